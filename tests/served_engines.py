"""One engine of each kind, for the configs in ``golden/triton_repo`` and the tests of repositories."""

from trtpipe.config.target import BackendModels, TritonModels
from trtpipe.triton_repo.configs import LocalEngine, TensorrtLlmEngine
from trtpipe.triton_repo.engine_parameters import EngineParameters

LOCAL = LocalEngine("/environment", "2026-01-01", TritonModels())
TENSORRT_LLM = TensorrtLlmEngine(
    EngineParameters(
        engine_folder="/release/engine",
        tokenizer_folder="/release/engine",
        beam_width_max=1,
        kv_memory_share=0.85,
        kv_reuse=False,
        kv_host_bytes=0,
        chunked_context=False,
        scheduler_policy="guaranteed_no_evict",
    ),
    template_date="2026-01-01",
    requests_max=64,
    models=BackendModels(queue_requests_max=256),
)
ENGINES = {"vllm": LOCAL, "tensorrt-llm": TENSORRT_LLM}
