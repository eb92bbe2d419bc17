"""NVIDIA AIPerf against a served release: Triton's ensemble, and the OpenAI-compatible front.

    nice python benchmarks/aiperf.py --workspace FOLDER [--triton ENVIRONMENT] [--environment .venv-aiperf]

The workspace has a promoted release of the local engine; ``trtpipe serve`` serves it on free ports. AIPerf gets an
environment of its own, made where it is not there (1.2 GB: its numpy is not the one that Triton's models need).
Each route is asked by two numbers of clients, streamed, for answers of one length. Writes
``benchmarks/results/aiperf.json``: what AIPerf has measured; the exit status is 1 where a request has failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trtpipe.chain.served import free_addresses
from trtpipe.core import environment
from trtpipe.core.process import stop
from trtpipe.core.store import Store
from trtpipe.release.current import require_current

REPOSITORY = Path(__file__).parents[1]
RESULTS = REPOSITORY / "benchmarks/results/aiperf.json"
AIPERF = "aiperf==0.13.0"
CLIENTS = (2, 8)
REQUESTS = 32
PROMPT_TOKENS = 64
ANSWER_TOKENS = 16
# AIPerf has no endpoint type for Triton's `generate_stream`: a template writes the body, and a path finds the text.
BODY = (
    '{"text_input": {{ text|tojson }}, "max_tokens": {{ max_tokens }}, "min_tokens": {{ max_tokens }}, "stream": true}'
)
ENSEMBLE = [
    *("--model", "ensemble", "--endpoint-type", "template"),
    *("--custom-endpoint", "/v2/models/ensemble/generate_stream"),
    *("--extra-inputs", json.dumps({"payload_template": BODY, "response_field": "text_output"})),
]
FRONT = [
    *("--model", "sample", "--endpoint-type", "chat", "--use-server-token-count"),
    *("--extra-inputs", json.dumps({"min_tokens": ANSWER_TOKENS})),
]
FIGURES = (
    "time_to_first_token",
    "inter_token_latency",
    "request_latency",
    "output_token_throughput",
    "request_throughput",
)


def installed(folder: Path) -> Path:
    """Return AIPerf's program, after its environment has been made where it is not there."""
    program = folder / "bin" / "aiperf"
    if not program.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", AIPERF], check=True)
    return program


@contextmanager
def serving(workspace: Path, triton: Path) -> Iterator[dict[str, str]]:
    """Run ``trtpipe serve`` until the block ends; gives what it has said of its addresses."""
    addresses = free_addresses()
    ports = asdict(addresses) | {"front_port": free_addresses().http_port, "triton_environment": str(triton.absolute())}
    settings = [word for name, value in ports.items() for word in ("--set", f"serving.{name}={value}")]
    command = [sys.executable, "-m", "trtpipe", "serve", "--json", *settings]
    with subprocess.Popen(command, cwd=workspace, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            said = ""
            while line := process.stdout.readline():
                said += line
                if line.startswith("}"):
                    break
            else:
                raise SystemExit("the server has ended; see above")
            yield json.loads(said)
        finally:
            stop(process, grace_s=60)


def measure(program: Path, route: list[str], url: str, tokenizer: Path, clients: int) -> dict[str, Any]:
    """Let AIPerf ask a route; return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(str(program), "profile", *route, "--url", url, "--streaming", "--tokenizer", str(tokenizer)),
            *("--concurrency", str(clients), "--request-count", str(REQUESTS), "--num-dataset-entries", str(REQUESTS)),
            *("--isl", str(PROMPT_TOKENS), "--osl", str(ANSWER_TOKENS), "--random-seed", str(clients)),
            *("--ui", "none", "--no-gpu-telemetry", "--artifact-dir", folder),
        ]
        # With this set, AIPerf refuses a tokenizer's folder.
        variables = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
        subprocess.run(command, env=variables, check=True, stdout=sys.stderr)
        found = json.loads((Path(folder) / "profile_export_aiperf.json").read_text("utf-8"))
    return {
        "clients": clients,
        "requests": int(found["completed_request_count"]["avg"]),
        "answered": int(found["request_count"]["avg"]),
        "errors": found["error_summary"],
        "answer_tokens_each": found["output_sequence_length"]["avg"],
        **{name: _rounded(found[name]) for name in FIGURES},
    }


def _rounded(figure: dict[str, Any]) -> dict[str, Any]:
    """Return a figure's unit with its median and 99th percentile, or its only value."""
    kept = ("p50", "p99") if "p50" in figure else ("avg",)
    return {"unit": figure["unit"], **{name: round(figure[name], 2) for name in kept}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument(
        "--triton", type=Path, default=REPOSITORY / ".venv-triton", help="environment that holds Triton"
    )
    parser.add_argument("--environment", type=Path, default=REPOSITORY / ".venv-aiperf", help="environment of AIPerf")
    options = parser.parse_args()
    program = installed(options.environment)
    engine = require_current(Store(options.workspace)).path / "engine"
    with serving(options.workspace, options.triton) as said:
        routes = {
            "ensemble, generate_stream": (ENSEMBLE, said["http"]),
            "front, /v1/chat/completions": (FRONT, said["openai"].removesuffix("/v1")),
        }
        rows = {
            name: [measure(program, route, url, engine.resolve(), clients) for clients in CLIENTS]
            for name, (route, url) in routes.items()
        }
    result = {
        "aiperf": AIPERF.partition("==")[2],
        "prompt_tokens_asked": PROMPT_TOKENS,
        "answer_tokens": ANSWER_TOKENS,
        "rows": rows,
        "engine": json.loads((engine / "engine.json").read_text("utf-8"))["resolved"],
        "environment": environment.describe(),
        "load_average_at_the_end": [round(each, 1) for each in os.getloadavg()],
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    good = all(row["answered"] == REQUESTS and not row["errors"] for each in rows.values() for row in each)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
