"""``README.md`` of a release's launch folder: what it needs, the ways to start it, the line that is run."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from trtpipe.engines.trtllm.launch.checks import SHM_MIB
from trtpipe.engines.trtllm.launch.kubernetes import BUSY_SHARE, CLAIM, WAITING_PART
from trtpipe.engines.trtllm.launch.line import TRITON, Ports, leader
from trtpipe.engines.trtllm.launch.metrics import REQUESTS
from trtpipe.engines.trtllm.launch.serving import MOUNT, START
from trtpipe.engines.trtllm.launch.systemd import UNIT

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.launch.serving import Serving


TAG_ONLY = (
    " The image is named by a tag, which can come to mean other bytes: `serving_image: NAME@sha256:...` in the target "
    "pins them."
)


def text(serving: Serving) -> str:
    ranks, ports = serving.ranks, serving.ports
    pin = "" if serving.pinned else TAG_ONLY
    return f"""# Starting this release

{ranks} on as many {serving.gpu_name}, driver {serving.driver}, in `{serving.image}`.{pin}

| with | how | then |
|---|---|---|
| Docker | `docker compose --file launch/compose.yaml up` | 127.0.0.1, ports {ports.http}, {ports.grpc}, {ports.metrics}; a second release so started takes its place, unless `--project-name` differs |
| systemd | `{UNIT}` to `/etc/systemd/system/`; `systemctl enable --now "$(systemd-escape --path --template={UNIT} RELEASE)"` | the same, restarted when it ends by itself; releases with other ports run beside it |
| Kubernetes | a claim `{CLAIM}` that holds this release, read by many nodes; `kubectl apply --filename launch/kubernetes.yaml` | service `trtpipe` |
| by hand, in the image | `python3 {START} . --check`, then without `--check` | ports 8000, 8001, 8002 |

All four run the same launcher, which the release carries (`start` and `trtpipe/`, Python's standard library alone). Before anything is
loaded it compares the lock (TensorRT-LLM, TensorRT, driver, GPU) with the machine, and looks at free GPU memory,
`/dev/shm` ({SHM_MIB} MiB), ports and MPI, all problems at once. It starts the ranks, refuses to be started by mpirun
itself or with another number of ranks, and ends a start that has not answered after {serving.time_limit_s} s with the last
line of each rank.

Kubernetes: the disruption budget keeps one pod, so that draining the only node waits until another serves. The node label
is GPU feature discovery's. The autoscaler adds a pod, up to {serving.replicas_max}, where `{REQUESTS.name}` says that
{BUSY_SHARE:.0%} of the engine's {serving.batch_size_max} places are taken (`active`), or that one in {WAITING_PART} waits (`waiting`). It needs the Prometheus
adapter; without that metric nothing is scaled. Requests for which there is no place are in no series of the backend: a
long queue shows as `active` at `max`.

The line, in leader mode:

```
{_folded(leader(ranks.count, PurePosixPath(MOUNT) / "model_repository", Ports(), shm_prefix="trtpipe_8000_"))}
```
"""  # noqa: E501 - rows of a table


def _folded(line: list[str]) -> str:
    """Return the line with a rank a row."""
    return " ".join(line).replace(" : -n 1", " : \\\n  -n 1").replace(f" -n 1 {TRITON}", f" \\\n  -n 1 {TRITON}", 1)
