"""Prints the result files as the tables of benchmarks/README.md.

python benchmarks/tables.py --write
"""

from __future__ import annotations

import sys
from pathlib import Path

from result_files import results, table
from route_tables import at_once, routes

PAGE = Path(__file__).with_name("README.md")
MARK = "<!-- what follows is printed by tables.py -->\n"
ANCHOR_TFLOPS = 790
# TFLOP of one layer at 72B shape and 65,536 tokens, by the step's name in the result file: in full, without tricks.
STEPS_72B = {
    "second pass": ("forward pass", 118),
    "G": ("G (its upper half is computed)", 141),
    "scale search": ("scale search (a 20-point grid on all rows; 256 rows are searched)", 494),
    "factorisation": ("factorisation (in TF32 where it is blocked)", 34),
}


def closeness(name: str) -> str:
    return table(
        ("recipe, calibration rows x tokens", "KL, nats (standard error)", "top-1", "perplexity", "tokens", "seconds"),
        (
            (
                step,
                f"{row['kl_nats']:.4f} ({row['kl_standard_error_nats']:.4f})",
                f"{row['top1_agreement']:.4f}",
                row["perplexity"],
                f"{row['tokens']:,}",
                row["seconds"],
            )
            for step, row in results(name)["rows"].items()
        ),
    )


def on_one_gpu() -> str:
    rows = results("h200")["rows"]
    ours = table(
        ("shape", "s a layer, median", "s in all", "GPU peak, GiB", "host peak, GiB", "anchor, TFLOP/s"),
        (
            (
                name,
                row["seconds_per_layer_median"],
                row["compute_seconds"],
                row["gpu_peak_gib"],
                row["host_peak_gib"],
                row["anchor_bf16_tflops"],
            )
            for name, row in rows.items()
            if "compute_seconds" in row
        ),
    )
    peer = "\n".join(
        f"{name}: " + "; ".join(f"{batch} {', '.join(map(str, times))} s a layer" for batch, times in each.items())
        for name, row in rows.items()
        if (each := row.get("seconds_per_layer"))
    )
    return f"{ours}\n{peer}\n"


def steps() -> str:
    (row,) = (row for name, row in results("h200")["rows"].items() if name.startswith("72b") and "steps" in name)
    taken = row["seconds_per_layer_by_step"]
    return table(
        ("step of one 72B layer", "TFLOP in full", f"s at {ANCHOR_TFLOPS} TFLOP/s", "s measured"),
        (
            (text, tflop, f"{tflop / ANCHOR_TFLOPS:.3f}", f"{taken[step]:.3f}")
            for step, (text, tflop) in STEPS_72B.items()
        ),
    )


def beside_the_peer(name: str) -> str:
    return table(
        ("calibration rows x tokens, layers", "ours, s", "ModelOpt batch 1, s", "ModelOpt batch 8, s", "times faster"),
        (
            (step, *(", ".join(map(str, times)) for times in row["seconds"].values()), row["ratio_of_medians"])
            for step, row in results(name)["rows"].items()
        ),
    )


def growth() -> str:
    return table(
        ("calibration rows x tokens, layers", "seconds", "host peak, MiB"),
        ((name, row["seconds"], row["peak_rss_mib"]) for name, row in results("tokens-gpu")["rows"].items()),
    )


def calibration_sets() -> str:
    return table(
        ("calibrated on", "prompts", "tokens", "KL, nats (standard error)", "top-1", "tokens scored"),
        (
            (
                name,
                row["prompts"],
                f"{row['calibration_tokens']:,}",
                f"{row['kl_nats']:.4f} ({row['kl_standard_error_nats']:.4f})",
                f"{row['top1_agreement']:.4f}",
                f"{row['tokens']:,}",
            )
            for name, row in results("calibrations")["rows"].items()
        ),
    )


def prompt_log() -> str:
    document = results("prompts")
    read, chosen = document["read"], document["choose"]
    sampled, whole = document["read_and_measure"], document["every_row"]
    lead = (
        f"{read['rows']:,} rows ({document['log_mib']:,} MiB) read, exact duplicates and lengths: {read['seconds']} s, "
        f"{read['cpu_seconds']} CPU s, peak {read['peak_rss_mib']} MiB. With templates, token lengths and near "
        f"duplicates on a sample of {sampled['pool_rows']:,} rows: {sampled['seconds']} s, peak "
        f"{sampled['peak_rss_mib']:,} MiB; on every row, on a busy machine: {whole['seconds']} s "
        f"({whole['cpu_seconds']} CPU s), peak {whole['peak_rss_mib']:,} MiB.\n\n"
        f"{chosen['prompts']} prompts chosen of {chosen['rows']:,} rows in {chosen['segments_of_log']} segments, "
        "and the median of 20 random draws of as many:\n\n"
    )
    return lead + table(
        ("feature", "statistic", "stratified", "chosen", "random"),
        (
            (
                one["feature"],
                one["statistic"],
                "yes" if one["stratified"] else "no",
                f"{one['chosen']:.5f}",
                f"{one['random_median']:.5f}",
            )
            for one in chosen["distances"]
        ),
    )


def prefix_hits() -> str:
    found = results("prefix_hits")
    return (
        f"Of {found['prompt_tokens']:,} tokens in {found['requests']} requests, `trtpipe profile` predicts "
        f"{found['predicted_reused_tokens']:,} reused; the counter of {found['engine']} says "
        f"{found['engine_hit_tokens']:,}.\n"
    )


def export_72b() -> str:
    found = results("export-72b")
    rows = table(
        ("depth", "seconds", "host peak, GiB", "bytes written"),
        (
            (name, row["seconds"], row["peak_host_gib"], f"{row['bytes_written']:,}")
            for name, row in found["rows"].items()
        ),
    )
    return f"{rows}\n{found['peak']}\n"


def load() -> str:
    document = results("aiperf")
    words = (
        f"Streamed, prompts of {document['prompt_tokens_asked']} tokens, answers of {document['answer_tokens']}; "
        f"AIPerf {document['aiperf']}, server and load on the same {document['environment']['cpu_cores']} shared cores "
        f"(load average {document['load_average_at_the_end'][1]}).\n\n"
    )
    return words + table(
        (
            "route",
            "clients",
            "requests",
            "failed",
            "first token, ms (p50, p99)",
            "between tokens, ms (p50, p99)",
            "tokens/s",
        ),
        (
            (
                route,
                row["clients"],
                row["requests"],
                row["requests"] - row["answered"],
                *(
                    f"{row[name]['p50']:,.0f}, {row[name]['p99']:,.0f}"
                    for name in ("time_to_first_token", "inter_token_latency")
                ),
                row["output_token_throughput"]["avg"],
            )
            for route, rows in document["rows"].items()
            for row in rows
        ),
    )


SECTIONS = {
    "Closeness on the fixed case, computed on an H200 (`quantize.py quality`)": lambda: closeness("quality-gpu"),
    "The same on a CPU": lambda: closeness("quality-cpu"),
    "Rows that scales are searched on, scored on calibration rows": lambda: closeness("quality-rows-searched"),
    "Time on one H200, random weights (`gpu.py`)": on_one_gpu,
    "Each step against its limit": steps,
    "What grows with the calibration tokens, sample model on an H200 (`quantize.py tokens`)": growth,
    "Beside ModelOpt's awq_lite on a CPU with AVX-512 (`quantize.py speed`)": lambda: beside_the_peer(
        "speed-cpu-avx512"
    ),
    "The same on a CPU with AVX2, in float32": lambda: beside_the_peer("speed-cpu"),
    "What the calibration set does to the sample model (`calibrations.py`)": calibration_sets,
    "A production log (`prompts.py`)": prompt_log,
    "Prefix reuse (`prefix_hits.py`)": prefix_hits,
    "The full route beside the bare engine (`routes.py`)": routes,
    "All routes at once (`tests/soak/mixed.py`)": at_once,
    "A served release under load, asked by NVIDIA AIPerf (`aiperf.py`)": load,
    "A TensorRT-LLM checkpoint of Qwen2.5-72B's widths for TP 8, on a CPU (`export_72b.py`)": export_72b,
}


def page() -> str:
    """Return the whole page: its own words, then the tables."""
    words = PAGE.read_text("utf-8").split(MARK)[0]
    return words + MARK + "".join(f"\n## {title}\n\n{made()}" for title, made in SECTIONS.items())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page())
