"""``compose.yaml``: the release in one container of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from trtpipe.engines.trtllm.launch.checks import SHM_MIB
from trtpipe.engines.trtllm.launch.line import Ports
from trtpipe.engines.trtllm.launch.serving import ENVIRONMENT, MOUNT, NAME, POLL_S, STOP_S
from trtpipe.engines.trtllm.launch.watch import READY

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.engines.trtllm.launch.serving import Serving

FILE = "compose.yaml"
SERVICE = "tritonserver"
INSIDE = Ports()
# The image has a Python, which the launcher needs; a curl it need not have. As `watch.is_ready`, without a proxy.
ASK = (
    "from urllib.request import ProxyHandler, build_opener; "
    f"build_opener(ProxyHandler({{}})).open('http://127.0.0.1:{INSIDE.http}{READY}', timeout=5)"
)


def document(serving: Serving) -> dict[str, Any]:
    inside = INSIDE.by_purpose()
    gpus = {"driver": "nvidia", "count": serving.ranks.count, "capabilities": ["gpu"]}
    service = {
        "image": serving.image,
        "command": serving.command,
        "environment": ENVIRONMENT,
        "volumes": [{"type": "bind", "source": "..", "target": MOUNT, "read_only": True}],
        "ports": [f"127.0.0.1:{port}:{inside[purpose]}" for purpose, port in serving.ports.by_purpose().items()],
        "shm_size": f"{SHM_MIB}m",
        "ulimits": {"memlock": -1, "stack": 67108864},
        "init": True,
        "stop_grace_period": f"{STOP_S}s",
        "restart": "no",  # systemd does that; without it a person should see why it ended
        "deploy": {"resources": {"reservations": {"devices": [gpus]}}},
        "healthcheck": {
            "test": ["CMD", "python3", "-c", ASK],
            "interval": f"{POLL_S}s",
            "timeout": "6s",
            "retries": 3,
            "start_period": f"{serving.polls_to_ready * POLL_S}s",
        },
    }
    return {"name": NAME, "services": {SERVICE: service}}


def image_of(launch: Path) -> str | None:
    """Return the image that the files of a release's ``launch`` folder name; None where they do not say."""
    try:
        image = yaml.safe_load((launch / FILE).read_text("utf-8"))["services"][SERVICE]["image"]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):  # a changed file is the record's matter
        return None
    return image if isinstance(image, str) else None
