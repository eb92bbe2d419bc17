"""The Python environments that other quantizers run in: found, and with the versions that were tested."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trtpipe.errors import ConfigError, EnvironmentUnfit

PROBE_LIMIT_S = 60
PROBE = """
import importlib.metadata, json, sys
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"""


@dataclass(frozen=True)
class Tested:
    """The versions that a quantizer was tested with; any torch does. ``install``: arguments of `pip install`."""

    versions: dict[str, str]
    install: tuple[str, ...]


TESTED = {
    "modelopt": Tested(
        {"nvidia-modelopt": "0.47.0", "transformers": "4.57.6"},
        ("install torch==2.13.0 nvidia-modelopt==0.47.0 transformers==4.57.6 'accelerate>=1.2,<2'",),
    ),
    # with a newer transformers the attention that AutoAWQ calls lacks an argument, or its import fails
    "autoawq": Tested(
        {"autoawq": "0.2.9", "transformers": "4.51.3"},
        (
            "install torch==2.13.0 setuptools wheel",
            "install --no-deps --no-build-isolation autoawq==0.2.9",
            "install transformers==4.51.3 'accelerate>=1.2,<2' datasets zstandard",
        ),
    ),
}


def python_of(kind: str, environment: Path | None) -> Path:
    """Return the environment's Python. Raises ConfigError where none is given or there is none."""
    if environment is None:
        raise ConfigError(
            f"the quantizer {kind} runs in an environment of its own, and none is given",
            where="quantization.environment",
            fix=f"make one ({making(kind, Path('.venv-' + kind))}) and give its folder",
        )
    python = environment / "bin" / "python"
    if not python.is_file():
        raise ConfigError(
            "there is no Python environment: no bin/python",
            where=str(environment),
            fix=f"make it: {making(kind, environment)}",
        )
    return python


def making(kind: str, environment: Path) -> str:
    """Return the commands that make a kind's environment."""
    pip = f"{environment / 'bin' / 'pip'}"
    return " && ".join([f"python3.11 -m venv {environment}", *(f"{pip} {one}" for one in TESTED[kind].install)])


def versions(kind: str, python: Path) -> dict[str, str]:
    """Return the versions in an environment. Raises EnvironmentUnfit listing installed and tested ones that differ."""
    tested = TESTED[kind].versions
    command = [str(python), "-c", PROBE, *tested, "torch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PROBE_LIMIT_S)
    if done.returncode:
        raise EnvironmentUnfit(
            f"the environment's Python does not run: {done.stderr.strip().splitlines()[-1:]}",
            where=str(python),
            fix=f"make it anew: {making(kind, python.parents[1])}",
        )
    found: dict[str, str | None] = json.loads(done.stdout)
    differing = [f"{name} {found[name] or 'is not installed'}, tested {version}" for name, version in tested.items()
                 if found[name] != version]  # fmt: skip
    if found["torch"] is None:
        differing.append("torch is not installed")
    if differing:
        raise EnvironmentUnfit(
            f"the environment does not have what {kind} was tested with: {'; '.join(differing)}",
            where=str(python.parents[1]),
            fix=making(kind, python.parents[1]),
        )
    return {name: version for name, version in found.items() if version is not None}
