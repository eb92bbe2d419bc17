"""A request over gRPC: always the call that Triton calls a stream, which ends after one response for a unary one.

Triton's plain call serves only models that answer exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import grpc
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from trtpipe.errors import EnvironmentUnfit, ToolFailed
from trtpipe.triton_repo import contract

SCHEME = "grpc://"
OUTPUT = "text_output"
# Triton's words for the types, and where a message holds their values.
TYPES = {
    "BOOL": ("BOOL", "bool_contents"),
    "FP32": ("FP32", "fp32_contents"),
    "INT32": ("INT32", "int_contents"),
    "STRING": ("BYTES", "bytes_contents"),
    "UINT64": ("UINT64", "uint64_contents"),
}
OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # a proxy of the environment must not stand between this machine and itself
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)


def texts(url: str, model: str, inputs: dict[str, Any], *, stream: bool, time_limit_s: float) -> Iterator[str]:
    """Yield the texts of the answer as they come; a closed iterator cancels the request.

    Raises EnvironmentUnfit where no server answers, ToolFailed with the server's words where it refuses or fails.
    """
    with grpc.insecure_channel(url.removeprefix(SCHEME), options=OPTIONS) as channel:
        call = GRPCInferenceServiceStub(channel).ModelStreamInfer(iter([request(model, inputs)]), timeout=time_limit_s)
        try:
            for response in call:
                if response.error_message:
                    _read_to_its_end(call)
                yield _text(response, f"{url}/{model}")
        except grpc.RpcError as fault:
            raise _failure(fault, f"{url}/{model}", time_limit_s) from None
        finally:
            call.cancel()


def _read_to_its_end(call: Iterator[Any]) -> None:
    """Wait until the server has ended a refused request.

    Triton 2.51 keeps a request for ever whose client cancels while its last response is on the way; the model is
    then never unloaded, and a stop lasts until Triton's exit timeout.
    """
    with suppress(grpc.RpcError):  # the refusal says more than how the call ended
        for _ in call:
            pass


def request(model: str, inputs: dict[str, Any]) -> messages.ModelInferRequest:
    """Return the message for one request. What is no tensor goes as a parameter, as over HTTP, and is refused."""
    tensors = {tensor.name: tensor for tensor in contract.ENSEMBLE.inputs}
    built = messages.ModelInferRequest(model_name=model)
    for name, value in inputs.items():
        if name in tensors:
            built.inputs.append(_tensor(tensors[name], value))
        else:
            built.parameters[name].string_param = str(value)
    return built


def _tensor(tensor: contract.Tensor, value: Any) -> messages.ModelInferRequest.InferInputTensor:
    datatype, field = TYPES[tensor.type]
    values = [one.encode() if isinstance(one, str) else one for one in (value if isinstance(value, list) else [value])]
    contents = messages.InferTensorContents(**{field: values})
    shape = [1, len(values)]  # the batch dimension first
    return messages.ModelInferRequest.InferInputTensor(
        name=tensor.name, datatype=datatype, shape=shape, contents=contents
    )


def _text(response: messages.ModelStreamInferResponse, where: str) -> str:
    """Return the text of one response; text tensors are lengths (4 bytes, little endian) and bytes in turn."""
    if response.error_message:
        # Such a message has no code that would tell a bad request from a failure.
        raise ToolFailed(
            f"the server answered: {response.error_message}",
            where=where,
            fix="correct the request; if it is right, see the server's log",
        )
    outputs = [output.name for output in response.infer_response.outputs]
    raw = response.infer_response.raw_output_contents[outputs.index(OUTPUT)]
    text: str = raw[4:].decode()
    return text


def _failure(fault: grpc.RpcError, where: str, time_limit_s: float) -> EnvironmentUnfit | ToolFailed:
    if fault.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return ToolFailed(f"no answer within {time_limit_s:g} s", where=where, fix="see the server's log")
    if fault.code() is grpc.StatusCode.UNAVAILABLE:
        return EnvironmentUnfit(
            "no server answers", where=where, fix="start one with `trtpipe serve`, or check the address"
        )
    return ToolFailed(
        f"the call failed: {fault.code().name}: {fault.details()}", where=where, fix="see the server's log"
    )
