"""``trtpipe inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtpipe.cli.common import Options, common
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.built.inspection import Inspection


@click.command(short_help="Say what a TensorRT-LLM engine is, and what it became otherwise than asked for.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--target", type=click.Path(path_type=Path), help="The target that the engine must be of.")
@click.option("--here", is_flag=True, help="Also hold its lock against this machine: versions, driver, GPUs.")
@common
def inspect(options: Options, folder: Path, target: Path | None, here: bool) -> None:
    """Say what the TensorRT-LLM engine in FOLDER is, without loading it, and what stands against it.

    Whether all ranks are there and whole, with which version and for which GPU it was built, and each argument of the
    builder that became something else than was asked for, with its cost. Exit code 3 where one is not accepted by the
    target (accepted_changes), or the engine is not the target's; 9 where a file is not the one that was recorded; 4
    where it would not run --here.

    Example: trtpipe inspect engines/built/0123456789ab --target engines/a100x8.yaml
    """
    from trtpipe.chain import trtllm_engine as engine

    found = engine.inspect(folder, target, options.settings)
    if here:
        with options.console() as console:
            for said in engine.require_here(found):
                console.note(said)
    refusals = found.refusals
    options.result({"ok": not refusals, "folder": str(folder), **found.document()}, _text(found))
    if refusals and not options.as_json:
        raise ConfigError(
            f"the engine is not what was asked for: {len(refusals)} refused, see above",
            where=str(folder),
            fix="build it again as said there, or accept a change by name in the target",
        )
    raise click.exceptions.Exit(ConfigError.exit_code if refusals else 0)


def _text(found: Inspection) -> str:
    from trtpipe.cli.plan_text import findings_text

    engine, lock = found.engine, found.lock
    build, plugins = engine.config["build_config"], engine.config["build_config"].get("plugin_config") or {}
    quantization = engine.pretrained.get("quantization") or {}
    paged = "on: KV reuse and chunked context" if plugins.get("use_paged_context_fmha") else "off: neither of them"
    rows = {
        "engine": f"{engine.path} ({engine.pretrained.get('architecture')}, TensorRT-LLM {engine.version})",
        "ranks": f"{engine.world_size} of {engine.world_size}, {sum(engine.sizes.values()):,} B, every byte as recorded"
        if found.verified
        else f"{engine.world_size} of {engine.world_size}, {sum(engine.sizes.values()):,} B; no record to compare with",
        "weights": f"{quantization.get('quant_algo')}, KV cache {quantization.get('kv_cache_quant_algo') or '16-bit'}",
        "limits": ", ".join(f"{key} {build.get(key)}" for key in ("max_batch_size", "max_seq_len", "max_num_tokens")),
        "paged": f"paged context FMHA {paged}",
        "lock": "none" if lock is None else f"{lock.gpu_name}, SM {', '.join(map(str, sorted(set(lock.sm_by_rank))))}, "
        f"TensorRT {lock.tensorrt}, driver {lock.driver_floor} or newer",
    }  # fmt: skip
    return "\n".join([*(f"{name:9}{said}" for name, said in rows.items()), *findings_text(found.findings)])
