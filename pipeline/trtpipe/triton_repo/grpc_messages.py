"""Requests and responses over gRPC as messages, and what its faults mean."""

from __future__ import annotations

from array import array
from typing import Any

import grpc
from tritonclient.grpc import service_pb2 as messages

from trtpipe.errors import ToolFailed
from trtpipe.triton_repo import contract
from trtpipe.triton_repo.exchange import OutOfTime, Piece

SCHEME = "grpc://"
OUTPUT = "text_output"
COUNTS = ("num_input_tokens", "num_output_tokens")
LOG_PROBS, LOG_PROB_IDS = "output_log_probs", "log_prob_ids"
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
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


def request(model: str, inputs: dict[str, Any], request_id: str = "") -> messages.ModelInferRequest:
    """Return the message for one request. What is no tensor goes as a parameter, as over HTTP, and is refused."""
    rows = contract.ENGINE if model == contract.ENGINE.name else contract.GUIDED_ENSEMBLE
    tensors = {tensor.name: tensor for tensor in rows.inputs}
    built = messages.ModelInferRequest(model_name=model, id=request_id)
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


def piece(response: messages.ModelStreamInferResponse, where: str) -> Piece:
    """Read one response. Text tensors are lengths (4 bytes, little endian) and bytes in turn, numbers as long."""
    if response.error_message:
        # Such a message has no code that would tell a bad request from a failure.
        raise ToolFailed(
            f"the server answered: {response.error_message}",
            where=where,
            fix="correct the request; if it is right, see the server's log",
        )
    names = [output.name for output in response.infer_response.outputs]
    raw = dict(zip(names, response.infer_response.raw_output_contents, strict=True))
    prompt_tokens, new_tokens = [int.from_bytes(raw[name], "little") if name in raw else None for name in COUNTS]
    log_probs = tuple(array("f", raw[LOG_PROBS])) if LOG_PROBS in raw else None
    ids = tuple(array("i", raw[LOG_PROB_IDS])) if LOG_PROB_IDS in raw else None
    return Piece(raw[OUTPUT][4:].decode(), prompt_tokens, new_tokens, log_probs, ids)


def is_failed(state: grpc.ChannelConnectivity) -> bool:
    return state in (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)


def failure(fault: grpc.RpcError, where: str, time_limit_s: float) -> ToolFailed:
    if fault.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return OutOfTime(time_limit_s, where)
    return ToolFailed(
        f"the call failed: {fault.code().name}: {fault.details()}", where=where, fix="see the server's log"
    )
