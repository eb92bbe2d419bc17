"""The model configs of a release for either kind of engine, from the tables of ``contract`` and ``upstream``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tritonclient.grpc import model_config_pb2 as mc

from trtpipe.config.target import BackendModels, TritonModels
from trtpipe.core import golden_ids
from trtpipe.triton_repo import contract, graph, upstream
from trtpipe.triton_repo.contract import Model, Step, Tensor
from trtpipe.triton_repo.engine_parameters import EngineParameters

# Seen from a model's folder: the release stays relocatable.
ENGINE_FOLDER = "../../engine"

# The local engine takes one prompt a request and batches in flight, so Triton itself refuses larger batches.
PROMPTS_PER_REQUEST = 1

# One instance answers in the order of arrival: with more, the chunks of one stream could overtake each other.
POSTPROCESSING_INSTANCES = 1


@dataclass(frozen=True)
class LocalEngine:
    """Where the local engine runs, and what its prompts see.

    ``environment``: absolute path of the Python environment that holds vLLM. ``template_date``: the day (ISO 8601)
    for a chat template that asks for it, so that served prompts are rendered as those of calibration were.
    ``has_golden``: whether the engine's folder holds golden prompts, which preprocessing then tries as it loads.
    """

    environment: str
    template_date: str
    models: TritonModels
    has_golden: bool = False


@dataclass(frozen=True)
class TensorrtLlmEngine:
    """A TensorRT-LLM engine behind Triton's own backend.

    ``requests_max``: most requests of one step of the engine, which is also what Triton may hand over at once.
    ``template_date``, ``has_golden``: as for LocalEngine.
    """

    parameters: EngineParameters
    template_date: str
    requests_max: int
    models: BackendModels
    has_golden: bool = False


def build(engine: LocalEngine | TensorrtLlmEngine) -> dict[str, mc.ModelConfig]:
    """Return the configs by model name. Raises ConfigError where the ensemble's wiring does not fit together."""
    tokenizing = {"tokenizer_dir": ENGINE_FOLDER}
    if isinstance(engine, LocalEngine):
        serving = _local(engine)
        ensemble = _ensemble(contract.GUIDED_ENSEMBLE, contract.GUIDED_STEPS)
        preprocessing, bls = contract.GUIDED_PREPROCESSING, contract.GUIDED_BLS
    else:
        preprocessing, bls = contract.PREPROCESSING, contract.BLS
        tokenizing = {"tokenizer_dir": engine.parameters.tokenizer_folder}
        serving = _tensorrt_llm(engine)
        ensemble = _ensemble(*_with_what_is_passed_on())
    rendering = {"template_date": engine.template_date}
    if engine.has_golden:
        rendering["golden_prompts"] = f"{ENGINE_FOLDER}/{golden_ids.FILE}"
    configs = [
        _python_model(
            preprocessing,
            engine.models.preprocessing_instances,
            tokenizing | rendering,
        ),
        serving,
        _python_model(contract.POSTPROCESSING, POSTPROCESSING_INSTANCES, tokenizing),
        ensemble,
        _python_model(bls, engine.models.bls_instances, tokenizing),
    ]
    found = {config.name: config for config in configs}
    graph.check(found)
    return found


def _local(engine: LocalEngine) -> mc.ModelConfig:
    # Triton's own queue stays empty: the engine takes each request at once.
    parameters = {
        "gpt_model_path": ENGINE_FOLDER,
        "EXECUTION_ENV_PATH": engine.environment,
        "queue_requests_max": str(engine.models.queue_requests_max),
    }
    return _python_model(contract.GUIDED_ENGINE, 1, parameters)


def _tensorrt_llm(engine: TensorrtLlmEngine) -> mc.ModelConfig:
    config = _config(upstream.ENGINE, engine.requests_max)
    config.backend = "tensorrtllm"
    config.instance_group.add(count=1, kind=mc.ModelInstanceGroup.KIND_CPU)
    config.dynamic_batching.preferred_batch_size.append(engine.requests_max)
    config.dynamic_batching.max_queue_delay_microseconds = engine.models.queue_delay_us
    config.dynamic_batching.default_queue_policy.max_queue_size = engine.models.queue_requests_max
    _set_parameters(config, engine.parameters.texts())
    return config


def _with_what_is_passed_on() -> tuple[Model, tuple[Step, ...]]:
    """Return ensemble and steps with all that TensorRT-LLM takes and gives beside what every engine does."""
    preprocessing, serving, postprocessing = contract.STEPS
    served = {output.name for output in contract.ENSEMBLE.outputs}
    statistics = {output.name: output.name for output in upstream.ENSEMBLE.outputs if output.name not in served}
    passed_on = set(upstream.PASSED_ON.values())
    ensemble = replace(
        contract.ENSEMBLE,
        inputs=contract.ENSEMBLE.inputs + tuple(row for row in upstream.ENSEMBLE.inputs if row.name in passed_on),
        outputs=upstream.ENSEMBLE.outputs,
    )
    serving = replace(serving, inputs=serving.inputs | upstream.PASSED_ON, outputs=serving.outputs | statistics)
    return ensemble, (preprocessing, serving, postprocessing)


def _python_model(model: Model, instances: int, parameters: dict[str, str]) -> mc.ModelConfig:
    config = _config(model)
    config.backend = "python"
    config.instance_group.add(count=instances, kind=mc.ModelInstanceGroup.KIND_CPU)
    _set_parameters(config, parameters)
    return config


def _set_parameters(config: mc.ModelConfig, parameters: dict[str, str]) -> None:
    for name, value in parameters.items():
        config.parameters[name].string_value = value


def _ensemble(model: Model, steps: Sequence[Step]) -> mc.ModelConfig:
    config = _config(model)
    config.platform = "ensemble"
    for step in steps:
        added = config.ensemble_scheduling.step.add(model_name=step.model, model_version=-1)
        added.input_map.update(step.inputs)
        added.output_map.update(step.outputs)
    return config


def _config(model: Model, requests_max: int = PROMPTS_PER_REQUEST) -> mc.ModelConfig:
    config = mc.ModelConfig(name=model.name, max_batch_size=requests_max)
    for tensor in model.inputs:
        added = config.input.add(optional=tensor.optional, allow_ragged_batch=tensor.ragged)
        _describe(added, tensor)
    for tensor in model.outputs:
        _describe(config.output.add(), tensor)
    if model.decoupled:
        config.model_transaction_policy.decoupled = True
    return config


def _describe(message: mc.ModelInput | mc.ModelOutput, tensor: Tensor) -> None:
    message.name = tensor.name
    message.data_type = mc.DataType.Value(f"TYPE_{tensor.type}")
    message.dims.extend(tensor.dims)
    if tensor.flat:
        message.reshape.SetInParent()
