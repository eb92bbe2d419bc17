"""What public threads have shown to go wrong with text; the numbers are those of the list of cases."""

import importlib
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from served_engines import TENSORRT_LLM

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


def stream(table, ids, stop_words=()):
    """Return the text of each response to one token after the other, then of the last one."""
    from answer import Answer

    answer = Answer(table, stop_words)
    texts = [table.text(answer.add([token])) for token in ids if not answer.stopped]
    return [*texts, table.text(answer.finish())]


def test_o_46_the_bytes_of_one_character_come_together(table):
    ids = byte_tokens(0xE8, 0xAF, 0xAD)

    assert stream(table, ids) == ["", "", "语", ""]
    assert table.text(ids) == "语"


def test_o_47_invalid_bytes_are_not_waited_for(table):
    ids = byte_tokens(0xC0, 0x88, 0x30)

    assert stream(table, ids) == ["\ufffd", "\ufffd", "0", ""]
    assert table.text(ids) == "\ufffd\ufffd0"


def test_o_48_spaces_in_front_of_words_are_kept(llama, table):
    """The space in front of the first word is part of the text that follows a prompt, on every route."""
    ids = [llama.tokenizer.token_to_id(piece) for piece in ("▁What", "▁is", "▁ML")]

    assert stream(table, ids) == [" What", " is", " ML", ""]
    assert table.text(ids) == " What is ML" == " " + llama.decode(ids)


def test_o_49_the_name_of_a_special_token_is_a_stop_word(table):
    from prompt import word_lists

    assert word_lists(["</s>"], table) == [[2], [1]]
    assert stream(table, [*byte_tokens(0x30), 2, *byte_tokens(0x31)], ["</s>"]) == ["0", "", ""]


def test_o_50_a_line_end_is_a_stop_word(table):
    from prompt import word_lists

    assert word_lists(["\n"], table) == [byte_tokens(0x0A), [1]]
    assert "".join(stream(table, byte_tokens(*b"one\ntwo\n"), ["\n"])) == "one"


def test_o_51_a_prompt_begins_with_one_bos(llama):
    from prompt import encode

    golden = [1, *(llama.tokenizer.token_to_id(letter) for letter in ("▁", *"What"))]

    assert encode("What", llama) == encode("<s>What", llama)[:1] + golden[1:] == golden
    assert encode("<s>What", llama).count(1) == 1


def test_o_55_what_comes_after_the_end_is_not_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", SimpleNamespace())
    ids_of = importlib.import_module("steps").ids_of
    monkeypatch.delitem(sys.modules, "steps")
    padded = np.full((1, 1, 200), 3, dtype=np.int32)
    padded[0, 0, :64] = 7

    assert ids_of({"_TOKENS_BATCH": padded, "_SEQUENCE_LENGTH": np.array([[64]])}) == [7] * 64


def test_o_55_any_of_the_ending_tokens_ends_an_answer():
    from generation import Limits, read

    values = {"input_ids": [5], "input_lengths": [1], "request_output_len": [200]}
    generation = read(values, Limits(tokens=300, vocabulary=10, eos_ids=frozenset({2, 3})))

    assert generation.end_ids == {2, 3}
    assert generation.answer_tokens_max == 200


def test_o_40_one_beam_is_the_default_everywhere_and_more_are_refused_in_words():
    from generation import Limits, read
    from parameters import RequestError

    values = {"input_ids": [5], "input_lengths": [1], "request_output_len": [1]}
    limits = Limits(tokens=64, vocabulary=10, eos_ids=frozenset())

    assert TENSORRT_LLM.parameters.texts()["max_beam_width"] == "1"
    assert read(values, limits) == read(values | {"beam_width": [1]}, limits)
    with pytest.raises(RequestError, match="beam_width is 4; this engine serves 1 only"):
        read(values | {"beam_width": [4]}, limits)
