"""The metric family that tells how busy an engine is, which Triton's tensorrtllm backend has on its metrics port.

Name, label and values: InitializeReporter in custom_metrics_reporter.cc; what they count: WaitForStats in
model_instance_state.cc beside it (triton_backend/inflight_batcher_llm/src of NVIDIA/TensorRT-LLM) and
getLeaderNewReqWithIds in cpp/tensorrt_llm/executor/executorImpl.cpp, stored texts of the 1.x line.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One family; its series differ in ``label``, which has one of ``values``."""

    name: str
    label: str
    values: tuple[str, ...]

    def selector(self, value: str) -> dict[str, str]:
        """Return the labels that pick one series. Raises ValueError for one that the backend does not have."""
        if value not in self.values:
            raise ValueError(f"{self.name} has no {self.label} {value}")
        return {self.label: value}


# ``active``: requests that have one of the engine's ``max`` places, running or not; ``waiting``: those of them that did
# not run in the last step, mostly for want of KV blocks. Requests for which no place is free are in no series: an
# engine with a long queue shows ``active`` at ``max``, and ``waiting`` may be 0.
REQUESTS = Family("nv_trt_llm_request_metrics", "request_type", ("active", "max", "scheduled", "context", "waiting"))
