"""STAND-IN for Triton with its `tensorrtllm` backend, and for mpirun, for tests: it runs no model.

What is upstream's: the line that starts it (leader mode, one process a rank), what the backend looks at when it loads
(`model_instance_state.cc`: gpt_model_path exists as it stands; the executor: as many processes as the engine has ranks,
each with its own file), the `generate` endpoints and the names of the KV block metrics. Prompts become ids by the
release's own modules. Answers are words of a fixed sentence, whatever is asked.

Environment: STANDIN_KV_BLOCKS (of the pool), STANDIN_SENTENCE, and what goes wrong: STANDIN_BACKEND_FAULT (text of a
failed load), STANDIN_UNSTEADY (each answer begins elsewhere), STANDIN_LEAD (a token's id: prompts begin with it, and
ought not to), STANDIN_REFUSES (requests of so many tokens get an error).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

NAME = "STAND-IN for Triton, which runs no model"
SENTENCE = os.environ.get("STANDIN_SENTENCE", "This is what the stand-in says, whatever it is asked. ")
TOKEN_S = 0.001


def option(name: str) -> str:
    return next(word.partition("=")[2] for word in sys.argv if word.startswith(f"--{name}="))


def load(repository: Path) -> tuple[Path, int]:
    """Return the engine's folder and its tokens a block. Exits as the server does where the backend fails."""
    text = (repository / "tensorrt_llm/config.pbtxt").read_text()
    values = dict(re.findall(r'key: "(\w+)"\s*value \{\s*string_value: "([^"]*)"', text))
    engine = Path(values["gpt_model_path"])
    rank, size = (int(os.environ.get(f"OMPI_COMM_WORLD_{name}", "0")) for name in ("RANK", "SIZE"))
    fault = os.environ.get("STANDIN_BACKEND_FAULT")
    if not engine.exists():
        fault = f"Decoder (GPT) model path at {engine} does not exist."
    else:
        config = json.loads((engine / "config.json").read_text())
        mapping = config["pretrained_config"]["mapping"]
        if mapping["tp_size"] * mapping["pp_size"] != max(size, 1):
            fault = f"MPI size {size} is not the engine's"
        elif not (engine / f"rank{rank}.engine").is_file():
            fault = f"rank{rank}.engine does not exist"
    if fault:
        print(f"E failed to load 'tensorrt_llm' version 1: {fault}", flush=True)
        sys.exit(1)
    return engine, config["build_config"]["plugin_config"]["tokens_per_block"]


class Answers:
    """Ids of the fixed sentence, as often as it takes."""

    def __init__(self, repository: Path) -> None:
        from tokenizers import Tokenizer

        folder = repository / "../tokenizer"
        sys.path.insert(0, str(repository / "preprocessing/1"))
        from chat import ChatTokenizer
        from prompt import encode

        self.chat, self.encode = ChatTokenizer.load(folder), encode
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.sentence = self.tokenizer.encode(SENTENCE, add_special_tokens=False).ids
        self.asked = count()

    def prompt(self, text: str) -> list[int]:
        ids: list[int] = self.encode(text, self.chat)
        return [*map(int, os.environ.get("STANDIN_LEAD", "").split()), *ids]

    def ids(self, tokens: int) -> list[int]:
        start = next(self.asked) if "STANDIN_UNSTEADY" in os.environ else 0
        return list(islice(cycle(self.sentence), start, start + tokens))

    def pieces(self, body: dict[str, Any], tokens: int) -> list[dict[str, Any]]:
        ids = self.ids(tokens)
        if "input_ids" in body:
            return [{"output_ids": ids, "sequence_length": len(ids)}]
        parts = [[token] for token in ids] if body.get("stream") else [ids]
        return [{"text_output": self.tokenizer.decode(part)} for part in parts]


def handler(answers: Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            about = {"name": NAME, "version": "stand-in", "extensions": ["generate"]}
            self.send(json.dumps(about if self.path == "/v2" else {}).encode())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "QUERY" in body:
                self.send(json.dumps({"INPUT_ID": answers.prompt(body["QUERY"])}).encode())
            else:
                self.answer(body)

        def answer(self, body: dict[str, Any]) -> None:
            tokens = int(body.get("max_tokens") or body["request_output_len"])
            if str(tokens) == os.environ.get("STANDIN_REFUSES"):
                self.send(b'{"error": "the stand-in refuses this length"}', 500)
                return
            pieces = answers.pieces(body, tokens)
            if self.path.endswith("_stream"):
                self.send_response(200)
                self.end_headers()
                for piece in pieces:
                    time.sleep(TOKEN_S)
                    self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
                    self.wfile.flush()
            else:
                time.sleep(TOKEN_S * tokens)
                self.send(json.dumps(pieces[0]).encode())

        def send(self, content: bytes, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *message: object) -> None: ...

    return Handler


def metrics(tokens_per_block: int) -> type[BaseHTTPRequestHandler]:
    blocks = int(os.environ.get("STANDIN_KV_BLOCKS", "1000"))
    values = {"max": blocks, "free": blocks, "used": 0, "tokens_per": tokens_per_block, "reused": 0, "fraction": 0}
    family, labels = "nv_trt_llm_kv_cache_block_metrics", 'model="tensorrt_llm",version="1"'
    lines = [f'{family}{{kv_cache_block_type="{name}",{labels}}} {value}\n' for name, value in values.items()]
    text = f"# HELP {family} STAND-IN\n# TYPE {family} gauge\n{''.join(lines)}".encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *message: object) -> None: ...

    return Handler


class Server(ThreadingHTTPServer):
    daemon_threads = True


def serve() -> None:
    repository = Path(option("model-repository"))
    _, tokens_per_block = load(repository)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") != "0":
        signal.pause()
    host = option("http-address")
    figures = Server((host, int(option("metrics-port"))), metrics(tokens_per_block))
    threading.Thread(target=figures.serve_forever, daemon=True).start()
    answers = Answers(repository)
    Server((host, int(option("http-port"))), handler(answers)).serve_forever()


def mpirun(words: list[str]) -> None:
    """Start ``-n COUNT PROGRAM ... : -n COUNT PROGRAM ...``; one that fails is the end of all."""
    lines: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            lines.append([])
        else:
            lines[-1].append(word)
    commands = [line[line.index("-n") + 2 :] for line in lines for _ in range(int(line[line.index("-n") + 1]))]
    children = []
    for rank, command in enumerate(commands):
        environment = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(len(commands))}
        children.append(subprocess.Popen(command, env=os.environ | environment))

    def end(*_: object) -> None:
        for child in children:
            child.terminate()

    signal.signal(signal.SIGTERM, end)
    while not any(child.poll() for child in children) and any(child.poll() is None for child in children):
        time.sleep(0.05)
    end()
    sys.exit(max(child.wait() for child in children))


def install(folder: Path) -> Path:
    """Make a folder for PATH with this stand-in as `tritonserver` and `mpirun`, and a backend's empty folder."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    (folder / "backends/tensorrtllm").mkdir(parents=True)
    shutil.copyfile(__file__, programs / "standin.py")
    for name in ("tritonserver", "mpirun"):
        run = f"runpy.run_path({str(programs / 'standin.py')!r}, run_name={name!r})"
        (programs / name).write_text(f"#!{sys.executable}\nimport runpy\n{run}\n")
        (programs / name).chmod(0o755)
    return programs


if __name__ == "tritonserver":
    serve()
elif __name__ == "mpirun":
    mpirun(sys.argv[1:])
