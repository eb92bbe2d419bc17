"""Check an ensemble before a server does: every tensor exists, has one source, and keeps its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonclient.grpc import model_config_pb2 as mc

from trtpipe.errors import ConfigError, TrtpipeError, raise_all


@dataclass
class _Tensors:
    """The ensemble's tensors that have a source so far, with their type."""

    known: dict[str, int]
    problems: list[TrtpipeError]

    def fault(self, what: str, where: str, fix: str) -> None:
        self.problems.append(ConfigError(what, where=where, fix=fix))


def check(configs: Mapping[str, mc.ModelConfig]) -> None:
    """Check every ensemble among ``configs`` (by model name). Raises ConfigError, with all problems at once."""
    raise_all(problems(configs))


def problems(configs: Mapping[str, mc.ModelConfig]) -> list[TrtpipeError]:
    """Return what is wrong with the ensembles; a type of 0 is one that is not known, and fits any."""
    ensembles = [config for config in configs.values() if config.HasField("ensemble_scheduling")]
    return [problem for ensemble in ensembles for problem in _problems(ensemble, configs)]


def _problems(ensemble: mc.ModelConfig, configs: Mapping[str, mc.ModelConfig]) -> list[TrtpipeError]:
    tensors = _Tensors({tensor.name: tensor.data_type for tensor in ensemble.input}, [])
    for step in ensemble.ensemble_scheduling.step:
        where = f"{ensemble.name}: step {step.model_name}"
        model = configs.get(step.model_name)
        if model is None:
            tensors.fault("the model is not in the repository", where, "add the model, or take the step out")
            continue
        _check_inputs(step, model, tensors, where)
        _check_outputs(step, model, tensors, where)
    _check_ends(ensemble, tensors)
    return tensors.problems


def _check_inputs(step: mc.ModelEnsembling.Step, model: mc.ModelConfig, tensors: _Tensors, where: str) -> None:
    inputs = {tensor.name: tensor for tensor in model.input}
    for name, source in step.input_map.items():
        if name not in inputs:
            tensors.fault(f"the model has no input `{name}`", where, f"its inputs: {', '.join(inputs)}")
        elif source not in tensors.known:
            tensors.fault(f"nothing before this step gives `{source}`", where, f"check the source of `{name}`")
        elif _differ(tensors.known[source], inputs[name].data_type):
            given, wanted = _type(tensors.known[source]), _type(inputs[name].data_type)
            tensors.fault(f"`{source}` is {given}, `{name}` takes {wanted}", where, "make the types agree")
    for name, tensor in inputs.items():
        if not tensor.optional and name not in step.input_map:
            tensors.fault(f"the required input `{name}` is not connected", where, "add it to the input map")


def _check_outputs(step: mc.ModelEnsembling.Step, model: mc.ModelConfig, tensors: _Tensors, where: str) -> None:
    outputs = {tensor.name: tensor for tensor in model.output}
    for name, target in step.output_map.items():
        if name not in outputs:
            tensors.fault(f"the model has no output `{name}`", where, f"its outputs: {', '.join(outputs)}")
        elif target in tensors.known:
            tensors.fault(f"`{target}` has a source already", where, "give this one another name")
        else:
            tensors.known[target] = outputs[name].data_type


def _check_ends(ensemble: mc.ModelConfig, tensors: _Tensors) -> None:
    used = {source for step in ensemble.ensemble_scheduling.step for source in step.input_map.values()}
    for tensor in ensemble.input:
        if tensor.name not in used:
            tensors.fault(f"no step takes the input `{tensor.name}`", ensemble.name, "connect it, or take it out")
    for output in ensemble.output:
        if output.name not in tensors.known:
            tensors.fault(f"no step gives the output `{output.name}`", ensemble.name, "connect it, or take it out")
        elif _differ(tensors.known[output.name], output.data_type):
            given = _type(tensors.known[output.name])
            tensors.fault(f"`{output.name}` is made as {given}", ensemble.name, f"not as {_type(output.data_type)}")


def _differ(one: int, other: int) -> bool:
    return one != other and mc.TYPE_INVALID not in (one, other)


def _type(value: int) -> str:
    return str(mc.DataType.Name(value)).removeprefix("TYPE_")
