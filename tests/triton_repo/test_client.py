"""The client against a server that sends prepared bytes."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from trtpipe.errors import EnvironmentUnfit, ToolFailed
from trtpipe.triton_repo import client


class Replay:
    """Answers every request with ``pieces``, one TCP write each; keeps the last request."""

    def __init__(self) -> None:
        self.status = 200
        self.pieces: list[bytes] = []
        self.path = ""
        self.body: dict[str, Any] = {}


@pytest.fixture
def replay() -> Iterator[tuple[Replay, str]]:
    state = Replay()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.path = self.path
            state.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(state.status)
            self.end_headers()
            for piece in state.pieces:
                self.wfile.write(piece)
                self.wfile.flush()

        def log_message(self, *message: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield state, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def event(text: str) -> bytes:
    return f"data: {json.dumps({'text_output': text}, ensure_ascii=False)}\n\n".encode()


def test_a_unary_answer(replay):
    state, url = replay
    state.pieces = [b'{"text_output": "Paris"}']

    answer = client.ask(url, "Capital of France?", max_tokens=5, options={"seed": 1})

    assert (answer.text, answer.chunks) == ("Paris", 1)
    assert state.path == "/v2/models/ensemble/generate"
    assert state.body == {"text_input": "Capital of France?", "max_tokens": 5, "stream": False, "seed": 1}


def test_the_other_model_is_asked_by_its_name(replay):
    state, url = replay
    state.pieces = [event("Paris")]

    client.ask(url, "x", max_tokens=5, model="tensorrt_llm_bls", stream=True)

    assert state.path == "/v2/models/tensorrt_llm_bls/generate_stream"


def test_messages_travel_as_a_json_document(replay):
    state, url = replay
    state.pieces = [b'{"text_output": ""}']
    messages = [{"role": "user", "content": "你好"}]

    client.ask(url, messages, max_tokens=5)

    assert json.loads(state.body["text_input"]) == {"messages": messages}


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_a_stream_is_put_together_however_it_is_cut(replay, cut):
    state, url = replay
    content = event("语") + event("") + event("line\u2028end \x85") + event(".")
    state.pieces = [content[start : start + cut] for start in range(0, len(content), cut)]
    seen: list[str] = []

    answer = client.ask(url, "x", max_tokens=5, stream=True, on_chunk=seen.append)

    assert seen == ["语", "line\u2028end \x85", "."]
    assert (answer.text, answer.chunks) == ("".join(seen), 3)
    assert state.path == "/v2/models/ensemble/generate_stream"


def refusal(status: int, content: bytes) -> Callable[[Replay], None]:
    def prepare(state: Replay) -> None:
        state.status, state.pieces = status, [content]

    return prepare


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (refusal(400, b'{"error": "too long"}'), "400: too long"),
        (refusal(400, b'data: {"error":"too long"}\n\n'), "too long"),
        (refusal(200, b'{"error": "exactly 1 response"}'), "exactly 1 response"),
        (refusal(500, b"broken"), "500: broken"),
    ],
)
def test_errors_carry_the_servers_words(replay, prepare, words, stream):
    state, url = replay
    prepare(state)

    with pytest.raises(ToolFailed, match=words):
        client.ask(url, "x", max_tokens=5, stream=stream)


def test_an_error_in_the_middle_of_a_stream_is_raised(replay):
    state, url = replay
    state.pieces = [event("so far"), b'data: {"error":"the engine has died"}\n\n']
    seen: list[str] = []

    with pytest.raises(ToolFailed, match="the engine has died"):
        client.ask(url, "x", max_tokens=5, stream=True, on_chunk=seen.append)

    assert seen == ["so far"]


def test_without_a_server_the_environment_is_unfit(replay):
    with pytest.raises(EnvironmentUnfit, match="no server answers"):
        client.ask("http://127.0.0.1:1", "x", max_tokens=5)
