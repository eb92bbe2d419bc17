"""``trtpipe@.service``: compose.yaml as a service of this machine; the instance is the release's path."""

from __future__ import annotations

from trtpipe.engines.trtllm.launch.compose import SERVICE
from trtpipe.engines.trtllm.launch.serving import STOP_S
from trtpipe.errors import ConfigError, Interrupted, UsageFault

UNIT = "trtpipe@.service"


def text() -> str:
    compose = "docker compose --file compose.yaml"
    sections = {
        "Unit": {
            "Description": "trtpipe release %f",
            "Documentation": "file:%f/launch/README.md",
            "Wants": "docker.service network-online.target",
            "After": "docker.service network-online.target",
            # An engine that can't start won't at the tenth try either, and each takes minutes of loading.
            "StartLimitIntervalSec": "6h",
            "StartLimitBurst": "5",
        },
        "Service": {
            "Type": "exec",
            "WorkingDirectory": "%f/launch",
            "ExecStart": f"{compose} up --abort-on-container-exit --exit-code-from {SERVICE}",
            "ExecStop": f"{compose} down --timeout {STOP_S}",
            "Restart": "on-failure",
            "RestartSec": "30s",
            # What config or engine is at fault for stays so.
            "RestartPreventExitStatus": f"{UsageFault.exit_code} {ConfigError.exit_code}",
            "SuccessExitStatus": str(Interrupted.exit_code),
            "TimeoutStopSec": f"{STOP_S + 30}s",
        },
        "Install": {"WantedBy": "multi-user.target"},
    }
    blocks = [
        "\n".join([f"[{section}]", *(f"{key}={value}" for key, value in keys.items())])
        for section, keys in sections.items()
    ]
    return "\n\n".join(blocks) + "\n"
