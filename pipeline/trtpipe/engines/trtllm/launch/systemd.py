"""``trtpipe@.service``: compose.yaml as a service of this machine; the instance is the release's path."""

from __future__ import annotations

from trtpipe.engines.trtllm.launch.compose import SERVICE
from trtpipe.engines.trtllm.launch.serving import NAME, STOP_S
from trtpipe.errors import ConfigError, Interrupted, UsageFault

UNIT = "trtpipe@.service"


def text() -> str:
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
            "ExecStart": _compose(f"up --abort-on-container-exit --exit-code-from {SERVICE}"),
            "ExecStop": _compose(f"down --timeout {STOP_S}"),
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


def _compose(words: str) -> str:
    """Return the line of a compose command in a project of the instance's own: those of one project replace each other.

    A project's name may not hold a path, nor an instance's escaped name, so it has the path's checksum. The path is a
    word of its own, which no shell reads; ``$$`` and ``%%`` are systemd's for one of them.
    """
    project = f'{NAME}-$$(printf %%s "$$1" | cksum | cut -d " " -f 1)'
    return f"/bin/sh -c 'exec docker compose --project-name \"{project}\" --file compose.yaml {words}' sh %f"
