"""Target files (``engines/*.yaml``): one engine kind with its settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trtpipe.config.schema import Section

KvDtype = Literal["fp8_e4m3", "bfloat16"]
TensorrtLlmKvDtype = Literal["model", "fp8_e4m3", "int8"]
SpeculativeMode = Literal[
    "none", "draft_tokens_external", "lookahead_decoding", "medusa", "explicit_draft_tokens", "eagle"
]
Count = Annotated[int, Field(ge=1)] | Literal["auto"]  # auto: the plan chooses, and says why


class TritonModels(Section):
    """The models around the engine.

    Postprocessing has one process always: the pieces of a stream could overtake each other in several. The engine is
    always decoupled: streams, the BLS model and the front need that.
    """

    preprocessing_instances: int = Field(default=2, ge=1, le=64, description="Processes that tokenize prompts.")
    bls_instances: int = Field(
        default=1, ge=1, le=64, description="Processes of tensorrt_llm_bls, each of which serves up to 256 requests."
    )
    queue_requests_max: int = Field(
        default=0,
        ge=0,
        lt=2**32,
        description="Most requests that wait for the engine; further ones are refused. 0: no limit.",
    )


class BackendModels(TritonModels):
    """The same before Triton's backend for TensorRT-LLM."""

    queue_delay_us: int = Field(
        default=0, ge=0, lt=2**32, description="How long a request may wait for others, so that they begin in one step."
    )


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
    triton: TritonModels = Field(default=TritonModels(), description="The models around the engine.")


class TensorrtLlmTarget(Section):
    """TensorRT-LLM on GPUs, always with paged KV cache and in-flight batching; `trtpipe plan` says what comes of it."""

    kind: Literal["tensorrt-llm"]
    version: Literal["1.2.1"] = Field(
        default="1.2.1", description="TensorRT-LLM that builds and serves: the last stable one with trtllm-build."
    )
    gpu: str = Field(description="GPU type, such as a100-80gb; the names are in engines/trtllm/gpus.py.")
    tensor_parallel: int = Field(default=1, ge=1, description="GPUs that share each layer.")
    pipeline_parallel: int = Field(default=1, ge=1, description="Groups of such GPUs that share the layers.")
    weights: Literal["w4a16_awq", "w4a16_gptq", "w4a8_awq", "fp8", "model"] = Field(
        description="w4a16_awq: what calibrate makes, and ModelOpt; w4a16_gptq: AutoAWQ and GPTQ; model: not quantized."
    )
    group_size: Literal[64, 128] = Field(default=128, description="Weights per scale of the 4-bit formats.")
    pad_intermediate: bool = Field(
        default=False,
        description="Whether `trtpipe export` widens the MLP with zeros where group size x TP does not divide it.",
    )
    dtype: Literal["bfloat16", "float16"] = Field(default="bfloat16", description="Type of activations.")
    kv_dtype: TensorrtLlmKvDtype = Field(description="Type of the KV cache; model: the 16-bit type of `dtype`.")
    kv_block_tokens: Literal[16, 32, 64, 128] = Field(default=32, description="Tokens per KV block.")
    kv_memory_share: float = Field(
        default=0.9, gt=0, lt=1, description="Share of the memory that the loaded engine leaves, for the KV cache."
    )
    kv_reuse: bool = Field(description="Reuse KV blocks of equal leading tokens; refused where the engine could not.")
    chunked_context: bool = Field(
        description="Prefill long prompts in pieces between the steps of others; refused where the engine could not."
    )
    speculative_mode: SpeculativeMode = Field(
        default="none", description="How tokens are guessed ahead; all but none are refused by the plan."
    )
    draft_tokens_max: int = Field(default=0, ge=0, description="Most tokens guessed ahead in one step.")
    answer_tokens_max: int = Field(default=1024, ge=1, description="Longest answer that a client may ask for.")
    max_seq_len: Count = Field(default="auto", description="Longest prompt plus answer, in tokens.")
    max_num_tokens: Count = Field(default="auto", description="Most tokens of all requests in one step.")
    max_batch_size: Count = Field(default="auto", description="Most requests in one step.")
    runtime_reserve_mib: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        default="auto", description="Memory of a GPU for driver, CUDA, NCCL and libraries, until one has measured it."
    )
    accepted_changes: list[str] = Field(
        default=[],
        description="Arguments of trtllm-build, by name, that the engine may have otherwise than asked for.",
    )
    sanity: bool = Field(
        default=True,
        description="Whether a w4a16_awq checkpoint's choice of tokens is compared with the model's before the build.",
    )
    build_workers: Count = Field(
        default="auto", description="Ranks built at once; auto: as many as there are ranks and the host's memory holds."
    )
    build_time_limit_s: float = Field(default=14400, gt=0, description="The build is stopped after this time.")
    container_image: str = Field(
        default="nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
        description="Image that builds where TensorRT-LLM is not on the host; NAME@sha256:... pins its bytes.",
    )
    serving_image: str = Field(
        default="auto",
        description="Image that serves, with Triton; auto: the one that built, where it has Triton, else the first of "
        "this version's by tag. NAME@sha256:... pins its bytes.",
    )
    load_time_limit_s: float = Field(default=1800, gt=0, description="A launched engine must answer within this time.")
    replicas_max: int = Field(default=2, ge=1, description="Most pods that Kubernetes may scale out to.")
    triton: BackendModels = Field(default=BackendModels(), description="The models around the engine.")


Target = Annotated[VllmTarget | TensorrtLlmTarget, Field(discriminator="kind")]
