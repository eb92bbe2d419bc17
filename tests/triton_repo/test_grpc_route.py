"""The gRPC route against a server that answers with prepared messages."""

import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceServicer, add_GRPCInferenceServiceServicer_to_server

from trtpipe.errors import EnvironmentUnfit, ToolFailed
from trtpipe.triton_repo import client, contract, grpc_messages
from trtpipe.triton_repo.exchange import Piece


def response(text: str, *, log_probs: tuple[float, ...] = (), **counts: int) -> messages.ModelStreamInferResponse:
    raw = text.encode()
    built = messages.ModelStreamInferResponse()
    numbers = [(name, count.to_bytes(4, "little")) for name, count in counts.items()]
    if log_probs:
        numbers.append(("output_log_probs", struct.pack(f"<{len(log_probs)}f", *log_probs)))
        numbers.append(("log_prob_ids", struct.pack(f"<{len(log_probs)}i", *range(len(log_probs)))))
    # The text is not the first output, so it must be found by its name.
    for name, content in (("other", b"\0"), *numbers, ("text_output", len(raw).to_bytes(4, "little") + raw)):
        built.infer_response.outputs.add(name=name)
        built.infer_response.raw_output_contents.append(content)
    return built


class Replay(GRPCInferenceServiceServicer):
    """Answers every request with ``responses``; keeps the last request.

    ``held_s``: the stream stays open so long at its end; ``left``: the client did not wait for that.
    """

    def __init__(self) -> None:
        self.responses: list[messages.ModelStreamInferResponse] = []
        self.failure: grpc.StatusCode | None = None
        self.held_s = 0.0
        self.left = False
        self.ended = threading.Event()

    def ModelStreamInfer(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802
        context.add_callback(self.ended.set)
        self.request = next(requests)
        yield from self.responses
        if self.failure:
            context.abort(self.failure, "broken")
        if self.held_s:
            self.left = self.ended.wait(self.held_s)


@pytest.fixture
def replay() -> Iterator[tuple[Replay, str]]:
    state = Replay()
    server = grpc.server(ThreadPoolExecutor(2))
    add_GRPCInferenceServiceServicer_to_server(state, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield state, f"grpc://127.0.0.1:{port}"
    server.stop(None).wait()


def test_an_answer_in_pieces(replay):
    state, url = replay
    state.responses = [response("语"), response(""), response(".")]
    seen: list[str] = []

    answer = client.ask(url, "x", max_tokens=5, model="tensorrt_llm_bls", stream=True, on_chunk=seen.append)

    assert seen == ["语", "."]
    assert (answer.text, answer.chunks) == ("语.", 2)
    assert state.request.model_name == "tensorrt_llm_bls"


def test_inputs_keep_their_type_and_have_a_batch_dimension():
    built = grpc_messages.request(
        "ensemble",
        {"text_input": "语", "stop_words": ["a", "b"], "temperature": 0.5, "stream": True, "seed": 2**64 - 1},
    )
    text, words, temperature, stream, seed = built.inputs

    assert (text.datatype, text.shape, text.contents.bytes_contents) == ("BYTES", [1, 1], ["语".encode()])
    assert (words.shape, words.contents.bytes_contents) == ([1, 2], [b"a", b"b"])
    assert (temperature.datatype, temperature.contents.fp32_contents) == ("FP32", [0.5])
    assert (stream.datatype, stream.contents.bool_contents) == ("BOOL", [True])
    assert (seed.datatype, seed.contents.uint64_contents) == ("UINT64", [2**64 - 1])


def test_every_type_of_the_contract_can_be_sent():
    assert {tensor.type for tensor in contract.GUIDED_ENSEMBLE.inputs} <= set(grpc_messages.TYPES)


def test_what_is_no_tensor_is_left_to_the_server_to_refuse():
    built = grpc_messages.request("ensemble", {"top_kk": 4})

    assert not built.inputs
    assert built.parameters["top_kk"].string_param == "4"


def test_counts_are_asked_for_and_come_beside_the_texts(replay):
    state, url = replay
    state.responses = [response("语", num_input_tokens=300, num_output_tokens=2), response("", num_output_tokens=1)]

    with client.Client(url) as asking, asking.pieces("x", max_tokens=5) as pieces:
        assert list(pieces) == [Piece("语", 300, 2), Piece("", None, 1)]
    assert {tensor.name for tensor in state.request.inputs} > {"return_num_input_tokens", "return_num_output_tokens"}


def test_log_probabilities_are_asked_for_and_come_beside_the_texts(replay):
    state, url = replay
    state.responses = [response("a", log_probs=(-0.5, -0.25)), response("b")]

    with client.Client(url) as asking, asking.pieces("x", max_tokens=5, return_log_probs=True) as pieces:
        found = list(pieces)
    assert [piece.log_probs for piece in found] == [(-0.5, -0.25), None]
    assert [piece.log_prob_ids for piece in found] == [(0, 1), None]
    assert "return_log_probs" in {tensor.name for tensor in state.request.inputs}


def test_an_error_carries_the_servers_words(replay):
    state, url = replay
    state.responses = [response("so far"), messages.ModelStreamInferResponse(error_message="the engine has died")]
    seen: list[str] = []

    with pytest.raises(ToolFailed, match="the engine has died"):
        client.ask(url, "x", max_tokens=5, stream=True, on_chunk=seen.append)

    assert seen == ["so far"]


def test_a_refused_request_is_not_cancelled_but_read_to_its_end(replay):
    """Triton keeps a request for ever that is cancelled just then."""
    state, url = replay
    state.responses = [messages.ModelStreamInferResponse(error_message="too long")]
    state.held_s = 0.5

    with pytest.raises(ToolFailed, match="too long"):
        client.ask(url, "x", max_tokens=5)

    assert not state.left


def test_a_refusal_is_told_also_where_the_server_does_not_end_it(replay):
    state, url = replay
    state.responses = [messages.ModelStreamInferResponse(error_message="too long")]
    state.held_s = 10.0

    with pytest.raises(ToolFailed, match="too long"):
        client.ask(url, "x", max_tokens=5, time_limit_s=0.5)


def test_a_call_that_fails_names_its_code(replay):
    state, url = replay
    state.failure = grpc.StatusCode.RESOURCE_EXHAUSTED

    with pytest.raises(ToolFailed, match="RESOURCE_EXHAUSTED: broken"):
        client.ask(url, "x", max_tokens=5)


def test_the_time_limit_holds(replay):
    state, url = replay
    state.held_s = 10.0

    with pytest.raises(ToolFailed, match=r"no answer within 0\.2 s"):
        client.ask(url, "x", max_tokens=5, time_limit_s=0.2)


def test_leaving_early_cancels_the_request(replay):
    state, url = replay
    state.responses, state.held_s = [response("so far")], 10.0

    with client.Client(url) as asking, asking.stream("x", max_tokens=5, time_limit_s=10) as texts:
        assert next(texts) == "so far"
        assert not state.ended.is_set()

    assert state.ended.wait(5)


def test_without_a_server_the_environment_is_unfit():
    with pytest.raises(EnvironmentUnfit, match="no server answers"):
        client.ask("grpc://127.0.0.1:1", "x", max_tokens=5)
