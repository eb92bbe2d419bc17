"""Target files (``engines/*.yaml``): one engine kind with its settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trtpipe.config.schema import Section

KvDtype = Literal["fp8_e4m3", "bfloat16"]


class VllmTarget(Section):
    """The local engine: vLLM on this machine."""

    kind: Literal["vllm"]
    weights: Literal["w4a16"] = Field(description="4-bit weights, 16-bit activations.")
    kv_dtype: list[KvDtype] = Field(
        min_length=1,
        description="KV cache types in order of preference; the first that the CPU can do is taken.",
    )
    kv_block_tokens: int = Field(default=32, multiple_of=32, ge=32, description="Tokens per KV block.")
    kv_pool_mib: int = Field(default=256, ge=16, description="Memory of the KV cache.")
    max_model_len: int = Field(default=2048, ge=64, description="Longest prompt plus answer, in tokens.")
    max_num_seqs: int = Field(default=16, ge=1, description="Most requests in one step (in-flight batching).")
    prefix_caching: bool = Field(default=True, description="Reuse KV blocks of equal leading tokens.")
    threads: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default="auto", description="OpenMP threads; auto: the cores this process may use."
    )
    load_time_limit_s: float = Field(default=300, gt=0, description="The engine must load and answer within this time.")


class TensorrtLlmTarget(Section):
    """TensorRT-LLM on GPUs. Known, but not built by this version."""

    kind: Literal["tensorrt-llm"]
    gpu: str = Field(description="GPU type, such as a100-80gb.")
    tensor_parallel: int = Field(default=1, ge=1, description="GPUs that share each layer.")
    kv_dtype: Literal["fp8_e4m3", "int8", "float16"] = "fp8_e4m3"


Target = Annotated[VllmTarget | TensorrtLlmTarget, Field(discriminator="kind")]
