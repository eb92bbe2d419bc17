"""STAND-IN for `tritonserver`, for tests: loads nothing, and answers only that it is ready.

Rank 0 listens where upstream's would, once every other rank is up; those wait. Environment: STANDIN_HANG_RANK (it says
so and never gets up), STANDIN_FAIL_RANK (it ends with status 1), STANDIN_FOLDER (where each rank writes its arguments).
"""

from __future__ import annotations

import http.server
import json
import os
import signal
import stat
import sys
import time
from pathlib import Path

RANK, SIZE = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0")), int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))
FOLDER = Path(os.environ.get("STANDIN_FOLDER", "."))


class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/v2/models/ensemble/ready" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in http.server
        pass


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    told = {
        "arguments": sys.argv[1:], "folder": str(Path.cwd()),
        "no_bytecode": os.environ.get("PYTHONDONTWRITEBYTECODE"),
    }  # fmt: skip
    (FOLDER / f"rank{RANK}.json").write_text(json.dumps(told))
    if os.environ.get("STANDIN_FAIL_RANK") == str(RANK):
        say("no kernel image is available for execution on the device")
        sys.exit(1)
    if os.environ.get("STANDIN_HANG_RANK") == str(RANK):
        say("NCCL INFO waiting for a peer")
        time.sleep(600)
    (FOLDER / f"up{RANK}").touch()
    say(f"rank {RANK} has loaded its engine")
    if RANK:
        time.sleep(600)
    while sum(1 for _ in FOLDER.glob("up*")) < SIZE:
        time.sleep(0.05)
    port = next(int(word.partition("=")[2]) for word in sys.argv if word.startswith("--http-port="))
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Ready).serve_forever()


def environment(folder: Path) -> dict[str, str]:
    """Return what a test sets. Open MPI would start no more ranks than this machine has cores."""
    return {"STANDIN_FOLDER": str(folder), "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}


def install(folder: Path) -> Path:
    """Write a program that runs this file."""
    program = folder / "tritonserver"
    program.write_text(f"#!{sys.executable}\nimport runpy\nrunpy.run_path({__file__!r}, run_name='__main__')\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


if __name__ == "__main__":
    main()
