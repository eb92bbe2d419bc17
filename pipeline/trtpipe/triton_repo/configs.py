"""The model configs of a release, from the tables of ``contract``."""

from __future__ import annotations

from dataclasses import dataclass

from tritonclient.grpc import model_config_pb2 as mc

from trtpipe.triton_repo import contract, graph
from trtpipe.triton_repo.contract import Model, Tensor

# Seen from a model's folder: the release stays relocatable.
ENGINE_FOLDER = "../../engine"

# The local engine takes one prompt a request and batches in flight, so Triton itself refuses larger batches.
PROMPTS_PER_REQUEST = 1

# Tokenizing takes under a millisecond; two instances keep a long prompt from delaying a short one.
PREPROCESSING_INSTANCES = 2
# One instance answers in the order of arrival: with more, the chunks of one stream could overtake each other.
POSTPROCESSING_INSTANCES = 1
# One process serves any number of requests, each in a thread.
BLS_INSTANCES = 1


@dataclass(frozen=True)
class LocalEngine:
    """Where the local engine runs, and what its prompts see.

    ``environment``: absolute path of the Python environment that holds vLLM. ``template_date``: the day (ISO 8601)
    for a chat template that asks for it, so that served prompts are rendered as those of calibration were.
    """

    environment: str
    template_date: str


def build(engine: LocalEngine) -> dict[str, mc.ModelConfig]:
    """Return the configs by model name. Raises ConfigError where the ensemble's wiring does not fit together."""
    tokenizing = {"tokenizer_dir": ENGINE_FOLDER}
    serving = {"gpt_model_path": ENGINE_FOLDER, "EXECUTION_ENV_PATH": engine.environment}
    configs = [
        _python_model(
            contract.PREPROCESSING, PREPROCESSING_INSTANCES, tokenizing | {"template_date": engine.template_date}
        ),
        _python_model(contract.ENGINE, 1, serving),
        _python_model(contract.POSTPROCESSING, POSTPROCESSING_INSTANCES, tokenizing),
        _ensemble(),
        _python_model(contract.BLS, BLS_INSTANCES, {}),
    ]
    found = {config.name: config for config in configs}
    graph.check(found)
    return found


def _python_model(model: Model, instances: int, parameters: dict[str, str]) -> mc.ModelConfig:
    config = _config(model)
    config.backend = "python"
    config.instance_group.add(count=instances, kind=mc.ModelInstanceGroup.KIND_CPU)
    for name, value in parameters.items():
        config.parameters[name].string_value = value
    return config


def _ensemble() -> mc.ModelConfig:
    config = _config(contract.ENSEMBLE)
    config.platform = "ensemble"
    for step in contract.STEPS:
        added = config.ensemble_scheduling.step.add(model_name=step.model, model_version=-1)
        added.input_map.update(step.inputs)
        added.output_map.update(step.outputs)
    return config


def _config(model: Model) -> mc.ModelConfig:
    config = mc.ModelConfig(name=model.name, max_batch_size=PROMPTS_PER_REQUEST)
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
