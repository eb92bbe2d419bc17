"""A worker that behaves as its job says."""

from __future__ import annotations

import atexit
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtpipe.core.worker import serve
from trtpipe.errors import ConfigError, EnvironmentUnfit, raise_all

if TYPE_CHECKING:
    from trtpipe.core.worker import Events

FOREVER_S = 60


def work(job: dict[str, Any], events: Events) -> dict[str, Any]:  # noqa: C901, PLR0912 - one case a behaviour
    match job["do"]:
        case "report":
            events.note("a note")
            events.progress("steps", 1, 2)
        case "fail":
            raise EnvironmentUnfit("no", where="here", fix="buy more")
        case "fail twice":
            raise_all([ConfigError("one"), ConfigError("two")])
        case "bug":
            raise RuntimeError("unforeseen")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            write_pid(job, "worker", os.getpid())
            time.sleep(FOREVER_S)
        case "hang politely":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(FOREVER_S)
        case "linger":
            atexit.register(time.sleep, FOREVER_S)
        case "fill the disk":
            raise OSError(errno.ENOSPC, "No space left on device")
        case "fill the disk in Rust":
            raise RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")
        case "say something":
            print("something")
        case "lose a file":
            Path("no such file").read_text()
        case "write":
            given = (Path(job["out"]) / "given").read_text()
            (Path(job["out"]) / "written").write_text(given + os.environ["MORE"])
        case "flood":
            for _ in range(1000):
                sys.stdout.write("x" * 99 + "\n")
                sys.stderr.write("y" * 99 + "\n")
        case "start another":
            write_pid(job, "other", subprocess.Popen(["/bin/sleep", str(FOREVER_S)]).pid)
        case "fork":
            if (pid := os.fork()) == 0:
                time.sleep(FOREVER_S)
            write_pid(job, "other", pid)
    return {"job_size": len(job.get("ballast", ""))}


def write_pid(job: dict[str, Any], name: str, pid: int) -> None:
    (Path(job["folder"]) / f"{name}.tmp").write_text(str(pid))
    (Path(job["folder"]) / f"{name}.tmp").rename(Path(job["folder"]) / name)


if __name__ == "__main__":
    serve(work)
