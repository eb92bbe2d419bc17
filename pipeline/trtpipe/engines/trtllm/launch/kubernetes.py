"""``kubernetes.yaml``: the release as one pod with all its ranks, which is scaled by whole pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtpipe.engines.trtllm.launch.checks import SHM_MIB
from trtpipe.engines.trtllm.launch.line import Ports
from trtpipe.engines.trtllm.launch.machine import SHARED_MEMORY
from trtpipe.engines.trtllm.launch.metrics import REQUESTS
from trtpipe.engines.trtllm.launch.serving import ENVIRONMENT, MOUNT, NAME, POLL_S, STOP_S
from trtpipe.engines.trtllm.launch.watch import READY

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.launch.serving import Serving

LABELS = {"app.kubernetes.io/name": NAME}
CLAIM = f"{NAME}-release"
INSIDE = Ports()
# A pod more is wanted from here on: chosen, not measured. Below the first share the engine takes new requests at once.
BUSY_SHARE = 0.8
WAITING_PART = 16  # of the batch: as many wait now and then for a single step
SCALE_DOWN_AFTER_S = 600
LONGEST_PERIOD_S = 1800  # autoscaling/v2 takes no longer one


def documents(serving: Serving) -> list[dict[str, Any]]:
    return [_deployment(serving), _service(), _disruption_budget(), _autoscaler(serving)]


def _deployment(serving: Serving) -> dict[str, Any]:
    ports = INSIDE.by_purpose()
    scraped = {
        "prometheus.io/scrape": "true", "prometheus.io/port": str(INSIDE.metrics), "prometheus.io/path": "/metrics",
    }  # fmt: skip
    container = {
        "name": "tritonserver",
        "image": serving.image,
        "command": serving.command,
        "env": [{"name": name, "value": value} for name, value in ENVIRONMENT.items()],
        "ports": [{"name": purpose, "containerPort": port} for purpose, port in ports.items()],
        "resources": {"limits": {"nvidia.com/gpu": serving.ranks.count}},
        "startupProbe": _probe(READY, failures=serving.polls_to_ready),
        "readinessProbe": _probe(READY, failures=2),
        "livenessProbe": _probe("/v2/health/live", failures=6),
        "volumeMounts": [
            {"name": "release", "mountPath": MOUNT, "readOnly": True},
            {"name": "shm", "mountPath": str(SHARED_MEMORY)},
        ],
    }
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # The label is GPU feature discovery's: the driver's name of the GPU, with dashes for blanks.
        "nodeSelector": {"nvidia.com/gpu.product": serving.gpu_name.replace(" ", "-")},
        "terminationGracePeriodSeconds": STOP_S,
        "containers": [container],
        "volumes": [
            {"name": "release", "persistentVolumeClaim": {"claimName": CLAIM, "readOnly": True}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{SHM_MIB}Mi"}},
        ],
    }
    # No replicas: that number is the autoscaler's. No surge: a node has no GPUs for a pod more.
    specification = {
        "selector": {"matchLabels": LABELS},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "progressDeadlineSeconds": serving.polls_to_ready * POLL_S + 60,
        "template": {"metadata": {"labels": LABELS, "annotations": scraped}, "spec": pod},
    }
    return _named("apps/v1", "Deployment", specification)


def _probe(path: str, *, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "http"}, "periodSeconds": POLL_S, "timeoutSeconds": 5,
        "failureThreshold": failures,
    }  # fmt: skip


def _service() -> dict[str, Any]:
    ports = [{"name": name, "port": port, "targetPort": name} for name, port in INSIDE.by_purpose().items()]
    return _named("v1", "Service", {"selector": LABELS, "ports": ports})


def _disruption_budget() -> dict[str, Any]:
    """A drained node waits until another pod serves; one that is not ready may go at any time."""
    specification = {
        "minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {"matchLabels": LABELS},
    }  # fmt: skip
    return _named("policy/v1", "PodDisruptionBudget", specification)


def _autoscaler(serving: Serving) -> dict[str, Any]:
    """Scale out where places run out, or where requests with a place wait; a pod at a time, as long as one loads."""
    batch = serving.batch_size_max
    wanted = {"active": f"{round(batch * BUSY_SHARE * 1000)}m", "waiting": str(max(batch // WAITING_PART, 1))}
    metrics = [
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": REQUESTS.name, "selector": {"matchLabels": REQUESTS.selector(kind)}},
                "target": {"type": "AverageValue", "averageValue": value},
            },
        }
        for kind, value in wanted.items()
    ]
    period_s = min(serving.polls_to_ready * POLL_S, LONGEST_PERIOD_S)
    specification = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
        "minReplicas": 1,
        "maxReplicas": serving.replicas_max,
        "metrics": metrics,
        "behavior": {
            "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": period_s}]},
            "scaleDown": {
                "stabilizationWindowSeconds": SCALE_DOWN_AFTER_S,
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": SCALE_DOWN_AFTER_S}],
            },
        },
    }
    return _named("autoscaling/v2", "HorizontalPodAutoscaler", specification)


def _named(version: str, kind: str, specification: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": version, "kind": kind, "metadata": {"name": NAME, "labels": LABELS}, "spec": specification,
    }  # fmt: skip
