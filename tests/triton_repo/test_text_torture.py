"""Streamed text == unary text == the tokenizer's own, for hard texts and for tokens that make no text at all."""

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import hard_texts
from trtpipe.core.token_bytes import TokenBytes

CASES = 2000
TOKENIZERS = {
    "byte-level": hard_texts.byte_level(),
    "sentencepiece": hard_texts.sentencepiece(),
    "unigram": hard_texts.unigram(),
}
TABLES = {name: TokenBytes(tokenizer) for name, tokenizer in TOKENIZERS.items()}

pieces_of_text = st.one_of(st.sampled_from(hard_texts.TEXTS), st.text(max_size=12))


@st.composite
def answers(draw):
    """A tokenizer, the ids of texts with any ids between them, and how many of them come at a time."""
    name = draw(st.sampled_from(sorted(TOKENIZERS)))
    tokenizer = TOKENIZERS[name]
    any_ids = st.lists(st.integers(0, tokenizer.get_vocab_size() - 1), max_size=8)
    ids = []
    for piece in draw(st.lists(st.one_of(pieces_of_text, any_ids), max_size=4)):
        ids += tokenizer.encode(piece).ids if isinstance(piece, str) else piece
    steps = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    return name, ids, steps


def chunks(ids, steps):
    start = 0
    while start < len(ids):
        for step in steps:
            yield ids[start : start + step]
            start += step


def stream(table, ids, steps, stop_words=(), *, opens_text=False):
    """Return the texts of the responses, as engine and postprocessing make them."""
    from answer import Answer

    answer = Answer(table, stop_words, opens_text=opens_text)
    texts = []
    for chunk in chunks(ids, steps):
        texts.append(table.text(answer.add(chunk)))
        if answer.stopped:
            return texts
    return [*texts, table.text(answer.finish())]


@settings(max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(answers(), st.booleans())
def test_streamed_unary_and_reference_are_equal(drawn, opens_text):
    name, ids, steps = drawn
    table = TABLES[name]
    event(f"{name}, {'an answer' if opens_text else 'a continuation'}")
    unary = "".join(stream(table, ids, [len(ids) or 1], opens_text=opens_text))

    assert unary == hard_texts.reference(TOKENIZERS[name], ids, opens_text=opens_text)
    assert "".join(stream(table, ids, steps, opens_text=opens_text)) == unary
    unfinished = [text for text in stream(table, ids, [1], opens_text=opens_text)[:-1] if text.endswith("\ufffd")]
    assert len(unfinished) <= unary.count("\ufffd")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(answers(), st.booleans(), st.data())
def test_a_stop_word_cuts_the_text_where_it_first_appears(drawn, opens_text, data):
    name, ids, steps = drawn
    table = TABLES[name]
    ids = [token for token in ids if table.of(token)]
    whole = "".join(stream(table, ids, [1], opens_text=opens_text))
    start = data.draw(st.integers(0, max(0, len(whole) - 1)))
    stop_word = whole[start : start + data.draw(st.integers(1, 5))] or "x"
    expected = whole.partition(stop_word)[0]

    for sizes in (steps, [len(ids) or 1]):
        assert "".join(stream(table, ids, sizes, [stop_word], opens_text=opens_text)) == expected


@pytest.mark.parametrize("name", sorted(TOKENIZERS))
@pytest.mark.parametrize("text", hard_texts.TEXTS)
def test_every_hard_text_comes_back(name, text):
    tokenizer = TOKENIZERS[name]
    ids = tokenizer.encode(text).ids
    for special in tokenizer.get_added_tokens_decoder().values():
        text = text.replace(special.content, "")
    if name != "byte-level":
        text = text.replace(hard_texts.WORD_JOIN, " ")

    came_back = "".join(stream(TABLES[name], ids, [1], opens_text=True))
    # A space in front of a text gets no second one from the tokenizer, so that the decoder takes the text's own.
    assert came_back == (text if name == "byte-level" else text.removeprefix(" "))


def test_merges_cross_the_borders_of_characters():
    """Else the torture would prove little."""
    assert sum(1 for piece in TABLES["byte-level"].known if 0x80 <= (piece or b"a")[0] < 0xC0 and len(piece) > 1) > 20
