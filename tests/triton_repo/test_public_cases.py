"""What public threads have shown to go wrong with text, tensors and lengths."""

import importlib.util
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from served_engines import ENGINES
from trtpipe.engines.trtllm.build import chosen
from trtpipe.triton_repo import configs, exchange, grpc_messages, http_events, repository
from trtpipe.triton_repo.trtllm_repository import Packaging

PACKAGING = Packaging(
    requests_max=8,
    kv_memory_share=0.9,
    kv_reuse=False,
    chunked_context=False,
    load_time_limit_s=60,
    template_date="2026-01-01",
)
LLAMA_SPECIAL = ["<unk>", "<s>", "</s>"]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A tokenizer with Llama 2's first ids and way with spaces, read as a model folder is."""
    from chat import ChatTokenizer

    pieces = [*LLAMA_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), "▁What", "▁is", "▁ML", "0", "▁"]
    pieces += [letter for letter in "WhatisML" if letter not in pieces]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={piece: token for token, piece in enumerate(dict.fromkeys(pieces))}, merges=[], byte_fallback=True
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in LLAMA_SPECIAL])
    folder = tmp_path_factory.mktemp("llama")
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return ChatTokenizer.load(folder)


@pytest.fixture
def table(llama):
    from token_bytes import TokenBytes

    return TokenBytes(llama.tokenizer)


def byte_tokens(*values):
    return [len(LLAMA_SPECIAL) + value for value in values]


def stream(table, ids, stop_words=(), *, opens_text=True):
    """Return the text of each response to one token after the other, then of the last one."""
    from answer import Answer

    answer = Answer(table, stop_words, opens_text=opens_text)
    texts = [table.text(answer.add([token])) for token in ids if not answer.stopped]
    return [*texts, table.text(answer.finish())]


def test_the_bytes_of_one_character_come_together(table):
    ids = byte_tokens(0xE8, 0xAF, 0xAD)

    assert stream(table, ids) == ["", "", "语", ""]
    assert table.text(ids) == "语"


def test_invalid_bytes_are_not_waited_for(table):
    ids = byte_tokens(0xC0, 0x88, 0x30)

    assert stream(table, ids) == ["\ufffd", "\ufffd", "0", ""]
    assert table.text(ids) == "\ufffd\ufffd0"


def test_words_keep_their_spaces_and_a_text_gets_none_in_front(llama, table):
    """The pieces carry their spaces; of the first one's, no tokenizer's own decoder lets anything be seen."""
    ids = [llama.tokenizer.token_to_id(piece) for piece in ("▁What", "▁is", "▁ML")]

    assert stream(table, ids) == ["What", " is", " ML", ""]
    assert table.opening(ids) == llama.decode(ids) == "What is ML"


def test_what_follows_a_prompt_begins_with_its_space(llama, table):
    """A model without a chat template goes on with the prompt's text."""
    ids = [llama.tokenizer.token_to_id(piece) for piece in ("▁What", "▁is")]

    assert stream(table, ids, opens_text=False) == [" What", " is", ""]


def test_a_space_alone_in_front_of_bytes_is_the_texts_beginning_too(llama, table):
    ids = [llama.tokenizer.token_to_id("▁"), *byte_tokens(*"语".encode()), llama.tokenizer.token_to_id("▁is")]

    assert stream(table, ids) == ["", "", "", "语", " is", ""]


def test_the_name_of_a_special_token_is_a_stop_word(table):
    from prompt import word_lists

    assert word_lists(["</s>"], table) == [[2], [1]]
    assert stream(table, [*byte_tokens(0x30), 2, *byte_tokens(0x31)], ["</s>"]) == ["0", "", ""]


def test_a_line_end_is_a_stop_word(table):
    from prompt import word_lists

    assert word_lists(["\n"], table) == [byte_tokens(0x0A), [1]]
    assert "".join(stream(table, byte_tokens(*b"one\ntwo\n"), ["\n"])) == "one"


def test_a_prompt_begins_with_one_bos(llama):
    from prompt import encode

    golden = [1, *(llama.tokenizer.token_to_id(letter) for letter in ("▁", *"What"))]

    assert encode("What", llama) == encode("<s>What", llama)[:1] + golden[1:] == golden
    assert encode("<s>What", llama).count(1) == 1


def test_what_comes_after_the_end_is_not_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", SimpleNamespace())
    ids_of = importlib.import_module("steps").ids_of
    monkeypatch.delitem(sys.modules, "steps")
    padded = np.full((1, 1, 200), 3, dtype=np.int32)
    padded[0, 0, :64] = 7

    assert ids_of({"_TOKENS_BATCH": padded, "_SEQUENCE_LENGTH": np.array([[64]])}) == [7] * 64


def test_padding_behind_the_end_becomes_no_text(monkeypatch, table, llama):
    """As a beam that ends at 64 of 200: with its ending token, then filled up with it."""
    sent = {}
    backend = SimpleNamespace(
        get_input_tensor_by_name=lambda request, name: SimpleNamespace(as_numpy=lambda: request[name]),
        Tensor=lambda name, values: sent.update({name: values}),
        InferenceResponse=list,
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend)
    spec = importlib.util.spec_from_file_location("postprocessing", repository.MODELS / "postprocessing" / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.TritonPythonModel()
    model.table = table
    tokens = np.full((1, 1, 200), llama.tokenizer.token_to_id("0"), dtype=np.int32)

    model.execute([{"TOKENS_BATCH": tokens, "SEQUENCE_LENGTH": np.array([[64]])}])

    assert sent["OUTPUT"].tolist() == [[b"0" * 64]]


def test_any_of_the_ending_tokens_ends_an_answer():
    from generation import Limits, read

    values = {"input_ids": [5], "input_lengths": [1], "request_output_len": [200]}
    generation = read(values, Limits(tokens=300, vocabulary=10, eos_ids=frozenset({2, 3})))

    assert generation.end_ids == {2, 3}
    assert generation.answer_tokens_max == 200


def test_one_beam_is_the_default_everywhere_and_more_are_refused_in_words():
    from generation import Limits, read
    from parameters import BEAMS, RequestError

    values = {"input_ids": [5], "input_lengths": [1], "request_output_len": [1]}
    limits = Limits(tokens=64, vocabulary=10, eos_ids=frozenset())

    assert PACKAGING.engine(has_golden=False).parameters.texts()["max_beam_width"] == "1"
    assert chosen.FIXED["max_beam_width"] == BEAMS == 1
    assert read(values, limits) == read(values | {"beam_width": [1]}, limits)
    with pytest.raises(RequestError, match="beam_width is 4; only 1 is served"):
        read(values | {"beam_width": [4]}, limits)


@pytest.mark.parametrize("kind", ENGINES)
def test_more_beams_are_refused_before_any_engine_sees_them(kind):
    """TensorRT-LLM's would answer with an assertion and its stack. Only what fails in preprocessing has a 4xx there."""
    first = configs.build(ENGINES[kind])["ensemble"].ensemble_scheduling.step[0]

    assert (first.model_name, first.input_map["BEAM_WIDTH"]) == ("preprocessing", "beam_width")


@pytest.mark.parametrize(("beams", "refused"), [(None, False), (1, False), (4, True), (0, True)])
def test_preprocessing_answers_other_beams_with_an_error_of_the_client(preprocessing, beams, refused):
    asked = {"QUERY": [b"0"], "REQUEST_OUTPUT_LEN": [1]} | ({} if beams is None else {"BEAM_WIDTH": [beams]})
    answer = preprocessing(asked)

    if refused:
        assert answer.error == (f"beam_width is {beams}; only 1 is served", "INVALID_ARG")
    else:
        assert answer.error is None


@pytest.fixture
def preprocessing(monkeypatch, llama, table):
    """Return a function that gives the model one request, by plain values for its tensors."""

    class TritonError:
        INVALID_ARG = "INVALID_ARG"

        def __new__(cls, *arguments):
            return arguments

    def input_tensor(request, name):
        return None if name not in request.tensors else SimpleNamespace(as_numpy=lambda: request.tensors[name])

    backend = SimpleNamespace(
        get_input_tensor_by_name=input_tensor,
        Tensor=lambda name, values: (name, values),
        TritonError=TritonError,
        Logger=SimpleNamespace(log_info=print),
        InferenceResponse=lambda tensors=(), error=None: SimpleNamespace(tensors=dict(tensors), error=error),
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend)
    spec = importlib.util.spec_from_file_location("preprocessing", repository.MODELS / "preprocessing" / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.TritonPythonModel()
    model.tokenizer, model.table, model.local = llama, table, True

    def ask(tensors):
        given = {name: np.array([values]) for name, values in tensors.items()}
        request = SimpleNamespace(
            tensors=given, parameters=lambda: "", timeout=lambda: 0, request_id=lambda: "order-17"
        )
        (answer,) = model.execute([request])
        return answer

    return ask


def test_ids_for_the_engine_itself_are_sent_with_their_batch_dimension():
    """[[1, 2, 3]]: of a tensor [3], Triton says that shape and data don't fit the config."""
    asked = {"input_ids": [1, 2, 3], "input_lengths": 3, "request_output_len": 4, "streaming": True}
    sent = grpc_messages.request("tensorrt_llm", asked)

    assert {tensor.name: list(tensor.shape) for tensor in sent.inputs} == {
        "input_ids": [1, 3],
        "input_lengths": [1, 1],
        "request_output_len": [1, 1],
        "streaming": [1, 1],
    }
    assert list(sent.inputs[0].contents.int_contents) == [1, 2, 3]
    assert not sent.parameters


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", exchange.MODELS)
def test_the_endpoint_is_one_that_serves_decoupled_models(model, stream):
    """Triton's `infer` refuses those."""
    path = http_events.endpoint("", model, stream=stream)

    assert path == f"/v2/models/{model}/generate" + ("_stream" if stream else "")
