"""Start a release in its container: `python3 RELEASE/launch/start RELEASE`.

The release carries these modules, which need the standard library alone. First everything that must be so
is checked, then the ranks are started, watched until rank 0 answers, and ended together.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, cast

from trtpipe.engines.trtllm.built import folder
from trtpipe.engines.trtllm.launch import checks, machine, ranks
from trtpipe.engines.trtllm.launch.line import ENGINE_MODEL, TRITON, Ports, leader
from trtpipe.engines.trtllm.launch.ranks import Ranks
from trtpipe.engines.trtllm.launch.watch import Watched
from trtpipe.errors import ConfigError, Interrupted, TrtpipeError, UsageFault, raise_all, system_fault

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.built.folder import EngineFolder
    from trtpipe.engines.trtllm.built.lock_rules import Locked

LOCK = "engine.lock.json"  # as built/lock.py writes it, which needs more than the standard library
LOCKED = (
    "tensorrt_llm", "tensorrt", "backend", "container_image", "container_digest", "driver_floor", "gpu_name",
    "sm_by_rank",
)  # fmt: skip


def main(words: list[str] | None = None) -> int:
    """Return the exit code of `errors.py`."""
    given = _parser().parse_args(words)
    try:
        _start(given)
    except TrtpipeError as fault:
        print(fault, file=sys.stderr)
        return fault.exit_code
    except OSError as fault:
        print(system_fault(fault), file=sys.stderr)
        return system_fault(fault).exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("launch", description="Start a release's TensorRT-LLM engine in Triton.")
    usual = Ports()
    made.add_argument("release", type=Path, help="folder with engine/ and model_repository/")
    made.add_argument("--ranks", type=int, help="refused where the engine has another number")
    for purpose, number in usual.by_purpose().items():
        made.add_argument(f"--{purpose}-port", type=port, default=number, help=f"default {number}")
    made.add_argument("--tritonserver", default=TRITON, help=f"default {TRITON}")
    made.add_argument("--time-limit-s", type=seconds, default=1800.0, help="the engine must answer within this time")
    made.add_argument("--check", action="store_true", help="make the checks, print the line and start nothing")
    return made


def seconds(text: str) -> float:
    if not 0 < (given := float(text)) < math.inf:
        raise ValueError(text)
    return given


def port(text: str) -> int:
    if not 1 <= (given := int(text)) <= 65535:
        raise ValueError(text)
    return given


def _start(given: argparse.Namespace) -> None:
    engine = folder.read(given.release / "engine")
    needed = Ranks.of(engine)
    ranks.require(needed, given.ranks, os.environ)
    ports = Ports(given.http_port, given.grpc_port, given.metrics_port)
    _require_distinct(ports)
    repository = (given.release / "model_repository").resolve()
    line = leader(needed.count, repository, ports, shm_prefix=f"trtpipe_{ports.http}_", program=given.tritonserver)
    found = checks.check(engine, _lock(engine), machine.look(os.environ, given.tritonserver), ports)
    for warning in found.warnings:
        print(f"warning: {warning.what}; {warning.cost}; {warning.fix or warning.why}", file=sys.stderr)
    raise_all(found.refusals)
    print(f"starting {needed}: {shlex.join(line)}", file=sys.stderr, flush=True)
    if not given.check:
        _run(line, repository / ENGINE_MODEL, needed.count, ports, given.time_limit_s)


def _require_distinct(ports: Ports) -> None:
    """Each port is free, and still only one server can have it: Triton would say so after loading."""
    numbers = ports.by_purpose()
    if len({*numbers.values()}) < len(numbers):
        raise UsageFault(
            f"the ports must differ: {', '.join(f'{purpose} {number}' for purpose, number in numbers.items())}",
            where=", ".join(f"--{purpose}-port" for purpose in numbers),
            fix="give each a port of its own; one that is not given has its default",
        )


def _run(line: list[str], home: Path, count: int, ports: Ports, time_limit_s: float) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stopped)
    watched = Watched(line, home)
    try:
        seconds = watched.wait_until_ready(ports.http, count, time_limit_s)
        print(f"ready after {seconds:.0f} s: http {ports.http}, grpc {ports.grpc}", file=sys.stderr, flush=True)
        watched.wait(count)
    finally:
        watched.stop()


def _stopped(number: int, _: FrameType | None) -> None:
    raise Interrupted(f"stopped by {signal.Signals(number).name}")


def _lock(engine: EngineFolder) -> Locked:
    path = engine.path / LOCK
    try:
        document = json.loads(path.read_text("utf-8"))
        return cast("Locked", SimpleNamespace(**{name: document[name] for name in LOCKED}))
    except (OSError, ValueError, TypeError, KeyError):
        raise ConfigError(
            "the engine has no lock that can be read: nothing says where it may run",
            where=str(path),
            fix="build it with `trtpipe build-engine`, which writes one",
        ) from None


if __name__ == "__main__":
    sys.exit(main())
