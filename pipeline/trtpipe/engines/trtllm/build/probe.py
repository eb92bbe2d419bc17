"""Can this machine build a TensorRT-LLM engine? On the host, or in a container; tested, not guessed from a package."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trtpipe.engines.trtllm.build import container
from trtpipe.engines.trtllm.build.releases import TRITON_PACKAGES, WHY_NONE, Release, is_past_engines
from trtpipe.errors import EnvironmentUnfit

PROGRAM = "trtllm-build"
# Where Triton's images from 26.04 on keep TensorRT-LLM (Dockerfile.triton.trt_llm_backend), perhaps not on PATH.
IN_TRITONS_IMAGE = "/opt/venv-tritonserver/bin/trtllm-build"
# pip writes an interpreter whose path is too long for the first line so
LONG_PATH = re.compile(r"""'''exec' "?([^"\s]+)"? """)
PROBE_LIMIT_S = 600  # the first import of TensorRT-LLM on a cold disk takes minutes
VERSIONS = f"""
import glob, importlib.metadata, json, sys
answer = {{"tensorrt_llm": None, "tensorrt": None, "fault": None}}
for name in ("tensorrt_llm", "tensorrt"):
    found = importlib.metadata.distributions(name=name, path=[*sys.path, *glob.glob({TRITON_PACKAGES!r})])
    answer[name] = next((one.version for one in found), None)
"""
IMPORT = """
try:
    import tensorrt_llm.builder
except BaseException as fault:
    answer["fault"] = f"{type(fault).__name__}: {fault}"
"""
# What is printed last is the answer: the libraries print on their own.
ANSWER = """
print("\\n" + json.dumps(answer))
"""


@dataclass(frozen=True)
class Installation:
    """A TensorRT-LLM that builds engines. ``image`` is None on the host; ``engine`` is docker or podman."""

    tensorrt_llm: str
    tensorrt: str
    program: str
    engine: str | None = None
    image: container.Image | None = None


@dataclass(frozen=True)
class _Site:
    """Where the program is; ``python`` runs in what it runs in."""

    program: str
    python: tuple[str, ...]
    name: str
    engine: str | None = None
    image: container.Image | None = None


def find(release: Release, image: str) -> Installation:
    """Return what builds on this machine: the host's own, else a container.

    Raises EnvironmentUnfit saying what is missing, or that the version has no engines.
    """
    site = _site(image)
    tensorrt_llm, tensorrt = _require(_ask(site, VERSIONS + IMPORT), release, site.name)
    return Installation(tensorrt_llm, tensorrt, site.program, site.engine, site.image)


def require_present(release: Release, image: str) -> None:
    """Raise EnvironmentUnfit where nothing here could build, as far as that shows without a heavy import."""
    site = _site(image)
    if site.engine is None:
        _require(_ask(site, VERSIONS), release, site.name)


@dataclass(frozen=True)
class Versions:
    """What serves on a machine. ``image``: where it is in one, and not on the host."""

    tensorrt_llm: str
    tensorrt: str | None
    image: container.Image | None


def versions_of_server(image: str) -> Versions | None:
    """Return the versions on the host, else in the ``image`` that serves; None where that is not on this machine.

    Raises EnvironmentUnfit where there is neither TensorRT-LLM nor anything to run an image with.
    """
    engine = container.engine()
    if _program() is None and engine is not None and container.find(engine, image) is None:
        return None
    site = _site(image)
    answer = _ask(site, VERSIONS)
    return Versions(answer["tensorrt_llm"] or "none", answer["tensorrt"], site.image)


def _program() -> str | None:
    return shutil.which(PROGRAM) or shutil.which(IN_TRITONS_IMAGE)


def _site(image: str) -> _Site:
    program = _program()
    if program is not None:
        return _Site(program, (interpreter_of(Path(program)),), program)
    engine = container.engine()
    if engine is None:
        raise EnvironmentUnfit(
            f"there is no {PROGRAM} here, and neither docker nor podman to run it in",
            where="PATH",
            fix=f"on a machine with the GPUs, install docker or podman and pull {image} (`trtpipe build-engine "
            "--dry-run` has its line), or pip install 'trtpipe[trtllm]' there",
        )
    pinned = container.inspect(engine, image)
    return _Site(PROGRAM, (*container.plain(engine, pinned), "python3"), pinned.name, engine, pinned)


def interpreter_of(program: Path) -> str:
    """Return the Python that a console script runs in. Raises EnvironmentUnfit where it does not say."""
    with program.open("rb") as file:
        first, second = (file.readline(4096).decode(errors="replace").strip() for _ in range(2))
    words = first.removeprefix("#!").split()
    if words == ["/bin/sh"] and (long_path := LONG_PATH.match(second)):
        return long_path[1]
    if not first.startswith("#!") or not words:
        raise EnvironmentUnfit(
            "not a Python console script: its first line names no interpreter",
            where=str(program),
            fix=f"install TensorRT-LLM anew, or take this {PROGRAM} off PATH",
        )
    return words[-1] if words[0].endswith("/env") else words[0]


def _ask(site: _Site, question: str) -> dict[str, str | None]:
    command = [*site.python, "-c", question + ANSWER]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PROBE_LIMIT_S)
        answer: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, IndexError, json.JSONDecodeError) as fault:
        raise EnvironmentUnfit(
            f"the Python of TensorRT-LLM does not run: {command[0]}: {type(fault).__name__}",
            where=site.name,
            fix="install TensorRT-LLM anew, or use the container",
        ) from None
    return answer


def _require(answer: dict[str, str | None], release: Release, where: str) -> tuple[str, str]:
    """Return the versions of TensorRT-LLM and TensorRT. Raises EnvironmentUnfit where they can't build the release."""
    version, tensorrt = answer["tensorrt_llm"], answer["tensorrt"]
    fix = f"install tensorrt-llm=={release.version}, or use {release.image}"
    if version is None:
        raise EnvironmentUnfit(f"{PROGRAM} is there, and TensorRT-LLM is not", where=where, fix=fix)
    if is_past_engines(version):
        raise EnvironmentUnfit(f"TensorRT-LLM {version} builds no engines: {WHY_NONE}", where=where, fix=fix)
    if answer["fault"] is not None:
        raise EnvironmentUnfit(
            f"TensorRT-LLM {version} is there, and its builder can't be imported: {answer['fault']}",
            where=f"{where}: import tensorrt_llm.builder",
            fix=fix,
        )
    if version != release.version or tensorrt is None:
        raise EnvironmentUnfit(
            f"TensorRT-LLM {version} on TensorRT {tensorrt}, and the target is for {release.version}: the "
            "tables of this program hold for that one",
            where=where,
            fix=fix,
        )
    return version, tensorrt
