"""Where Triton is: a Python environment of its own with the nvidia-pytriton wheel in it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from trtpipe.core.environment import requirements
from trtpipe.errors import EnvironmentUnfit

# Asked of the environment's own Python, because its models run in exactly that one.
_QUESTION = (
    "import json, sysconfig;"
    "print(json.dumps([sysconfig.get_path('purelib'), sysconfig.get_config_var('LIBDIR'),"
    "sysconfig.get_python_version()]))"
)


@dataclass(frozen=True)
class Installation:
    """A Triton that can be started. ``python_version``: as in 3.11, also of every model's environment."""

    environment: Path
    packages: Path
    python_libraries: Path
    python_version: str

    @property
    def triton(self) -> Path:
        return self.packages / "pytriton" / "tritonserver"

    @property
    def program(self) -> Path:
        return self.triton / "bin" / "tritonserver"

    @property
    def caches(self) -> Path:
        return self.triton / "caches"

    def variables(self) -> dict[str, str]:
        """Return the environment variables of the server and its models."""
        inherited = os.environ.get("LD_LIBRARY_PATH")
        # The wheel's stub needs this Python's own shared library; the system may have another of the same name.
        libraries = [
            self.packages / "nvidia_pytriton.libs",
            self.python_libraries,
            *([inherited] if inherited else []),
        ]
        return {
            **os.environ,
            "PATH": f"{self.environment / 'bin'}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
            "CUDA_VISIBLE_DEVICES": "",
        }

    def assemble_backends(self, folder: Path) -> None:
        """Put the Python backend and the stub of this Python version, which the wheel keeps apart, into ``folder``."""
        shutil.copytree(self.triton / "backends" / "python", folder / "python")
        stub = "triton_python_backend_stub"
        shutil.copy2(self.triton / "python_backend_stubs" / self.python_version / stub, folder / "python" / stub)


def find(environment: Path) -> Installation:
    """Find Triton in a Python environment. Raises EnvironmentUnfit where there is none that can run."""
    python = environment / "bin" / "python"
    if not python.is_file():
        raise _unfit("there is no Python environment for Triton", environment)
    answer = subprocess.run([python, "-c", _QUESTION], capture_output=True, text=True, check=False, timeout=60)
    if answer.returncode:
        raise _unfit(f"its Python does not run: {answer.stderr.strip()}", environment)
    packages, libraries, version = json.loads(answer.stdout)
    found = Installation(environment, Path(packages), Path(libraries), version)
    if not found.program.is_file():
        raise _unfit("nvidia-pytriton is not installed there", environment)
    if not list(found.python_libraries.glob(f"libpython{version}.so*")):
        raise _unfit(f"its Python has no shared library (libpython{version}.so in {libraries})", environment)
    return found


def require_same_python(installation: Installation, environment: Path) -> None:
    """Raise EnvironmentUnfit unless a model's ``environment`` has Triton's Python version: one stub serves all."""
    if not (environment / "lib" / f"python{installation.python_version}").is_dir():
        raise EnvironmentUnfit(
            f"the engine's environment is no Python {installation.python_version}, which Triton runs with",
            where=str(environment),
            fix="create both environments with the same Python",
        )


def making(environment: Path) -> str:
    """Return the commands that make an environment with Triton in it: the `triton` extra of this package."""
    server, *others = sorted(requirements("triton"), key=lambda name: not name.startswith("nvidia-pytriton"))
    pip = shlex.quote(str(environment / "bin" / "pip"))
    # what nvidia-pytriton asks for besides is for its own server in Python, which is not used
    return (
        f"python{sys.version_info.major}.{sys.version_info.minor} -m venv {shlex.quote(str(environment))} "
        f"&& {pip} install --no-deps {server} && {pip} install {shlex.join(others)}"
    )


def _unfit(what: str, environment: Path) -> EnvironmentUnfit:
    return EnvironmentUnfit(
        what,
        where=str(environment),
        fix=f"make it: {making(environment)}; or let serving.triton_environment name one that has Triton, "
        "such as the .venv-triton that `make setup` makes in a checkout",
    )
