"""Text from ids: whole characters, spaces kept, and the same text however an answer is divided."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def test_a_character_of_three_tokens_comes_whole(byte_level):
    from detokenizer import Detokenizer, is_whole

    detokenizer = Detokenizer(byte_level)
    ids = byte_level.encode("语")

    assert len(ids) == 3
    assert [is_whole(detokenizer.decode(ids[:end])) for end in (1, 2, 3)] == [False, False, True]
    assert detokenizer.text(ids) == "语"


def test_spaces_in_front_of_words_are_kept(sentencepiece):
    from detokenizer import Detokenizer

    detokenizer = Detokenizer(sentencepiece)
    what, is_, ml = (sentencepiece.tokenizer.token_to_id(token) for token in ("▁What", "▁is", "▁ML"))

    assert "".join(detokenizer.text([token]) for token in (what, is_, ml)) == " What is ML"
    assert detokenizer.text([what, is_, ml]) == " What is ML"


def test_special_tokens_have_no_text(byte_level):
    from detokenizer import Detokenizer

    end = byte_level.tokenizer.token_to_id("<end>")

    assert Detokenizer(byte_level).text([*byte_level.encode("ok"), end]) == "ok"


def test_bytes_that_are_no_text_are_not_waited_for_for_ever(sentencepiece):
    from detokenizer import Detokenizer, is_whole

    detokenizer = Detokenizer(sentencepiece)

    assert detokenizer.text([0xC0, 0x88, sentencepiece.tokenizer.token_to_id("0")]) == "\ufffd\ufffd0"
    assert is_whole(detokenizer.decode([0x80] * 4))
    assert detokenizer.text([0x80] * 9) == "\ufffd" * 9


def test_an_unfinished_character_at_the_end_is_shown(byte_level):
    from detokenizer import Detokenizer

    assert Detokenizer(byte_level).text(byte_level.encode("语")[:2]) == "\ufffd"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_chunks_add_up_to_the_whole_text_for_any_bytes(byte_level, sentencepiece, data):
    from answer import Answer
    from detokenizer import Detokenizer

    tokenizer = data.draw(st.sampled_from([byte_level, sentencepiece]))
    detokenizer = Detokenizer(tokenizer)
    pieces = data.draw(st.lists(st.lists(st.integers(0, 255), max_size=5), max_size=8))
    answer = Answer(tokenizer, detokenizer, [])
    chunks = [*(answer.add(piece) for piece in pieces), answer.finish()]

    assert [token for chunk in chunks for token in chunk] == [token for piece in pieces for token in piece]
    whole = detokenizer.text(token for piece in pieces for token in piece)
    assert "".join(detokenizer.text(chunk) for chunk in chunks) == whole


@given(text=st.text(max_size=40))
def test_any_text_comes_back(byte_level, text):
    from detokenizer import Detokenizer

    assert Detokenizer(byte_level).text(byte_level.encode(text)) == text
