"""What a client may write into text_input."""

import json
from dataclasses import replace

import pytest


@pytest.fixture
def chat(byte_level):
    return replace(byte_level, has_template=True)


def test_plain_text_is_one_user_message(chat):
    from prompt import encode

    assert chat.decode(encode("hello", chat)) == "<user>hello"


def test_a_document_is_a_conversation(chat):
    from prompt import encode

    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]

    assert chat.decode(encode(json.dumps({"messages": messages}), chat)) == "<system>s<user>u"


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"other": 1}', '"messages"', "{messages}"])
def test_other_json_is_plain_text(chat, text):
    from prompt import encode

    assert chat.decode(encode(text, chat)) == f"<user>{text}"


def test_without_a_template_text_is_the_prompt(byte_level):
    from prompt import encode

    assert byte_level.decode(encode("once", byte_level)) == "once"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": "hello"}, "must be a list"),
        ({"messages": [{"role": "user"}]}, r"messages\[0\]"),
        ({"messages": [{"role": "user", "content": "x"}, 5]}, r"messages\[1\]"),
        ({"messages": [{"role": "user", "content": "x"}], "tools": []}, "unknown keys: tools"),
    ],
)
def test_a_damaged_document_is_refused(chat, document, words):
    from parameters import RequestError
    from prompt import encode

    with pytest.raises(RequestError, match=words):
        encode(json.dumps(document), chat)


def test_stop_words_become_ids_and_ends(byte_level):
    from prompt import word_lists
    from token_bytes import TokenBytes

    a, b, c = byte_level.encode("abc")
    table = TokenBytes(byte_level.tokenizer)

    assert word_lists(["ab", "", "c"], table) == [[a, b, c], [2, 3, -1]]
    assert word_lists([], table) == [[], []]
    assert word_lists(["ab"], table, [258, 257]) == [[a, b, 258, 257], [2, 3, 4, -1]]


@pytest.mark.parametrize("words", [["end", "\n"], ["a,b", ":"], ["</s>"], [" is", "\u8bed"]])
def test_words_are_read_back_by_the_engine_as_the_client_wrote_them(byte_level, sentencepiece, words):
    from generation import Limits, read
    from prompt import word_lists
    from token_bytes import TokenBytes

    for tokenizer in (byte_level, sentencepiece):
        table = TokenBytes(tokenizer.tokenizer)
        ids, ends = word_lists(words, table)
        limits = Limits(tokens=64, vocabulary=300, eos_ids=frozenset())
        values = {"input_ids": [1], "input_lengths": [1], "request_output_len": [1], "stop_words_list": [*ids, *ends]}

        assert [table.written_text(word) for word in read(values, limits).stop_words] == words


def test_a_word_that_no_tokens_spell_does_not_become_another_one(unigram):
    """No answer has it; without it the engine must not find a damaged list either."""
    from generation import Limits, read
    from prompt import word_lists
    from token_bytes import TokenBytes

    table = TokenBytes(unigram.tokenizer)
    (spelled,) = table.spell("a")

    assert word_lists(["a\U0001f600"], table) == [[], []]
    ids, ends = word_lists(["\U0001f600", "a", "a\U0001f600"], table)
    assert [ids, ends] == [[spelled], [1]]
    values = {"input_ids": [1], "input_lengths": [1], "request_output_len": [1], "stop_words_list": [*ids, *ends]}
    assert read(values, Limits(tokens=64, vocabulary=300, eos_ids=frozenset())).stop_words == [[spelled]]


@pytest.mark.parametrize("text", ["[" * 20_000, '{"a":' * 20_000])
def test_deep_brackets_are_text(chat, text):
    from prompt import encode

    assert chat.decode(encode(text, chat)) == f"<user>{text}"
