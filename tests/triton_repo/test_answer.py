"""What is sent when: whole characters, and never a part of a stop word."""

import pytest


def texts(tokenizer, stop_words, pieces):
    """Send ``pieces`` one by one; return the text of each chunk, and whether a stop word ended it."""
    from answer import Answer
    from detokenizer import Detokenizer

    detokenizer = Detokenizer(tokenizer)
    answer = Answer(tokenizer, detokenizer, stop_words)
    chunks = []
    for piece in pieces:
        chunks.append(detokenizer.text(answer.add(tokenizer.encode(piece) if isinstance(piece, str) else piece)))
        if answer.stopped:
            return chunks, True
    chunks.append(detokenizer.text(answer.finish()))
    return chunks, answer.stopped


def test_the_bytes_of_a_character_arrive_together(byte_level):
    ids = byte_level.encode("语")

    assert texts(byte_level, [], [ids[:1], ids[1:2], ids[2:]]) == (["", "", "语", ""], False)


def test_a_stop_word_is_not_shown(byte_level):
    assert texts(byte_level, ["\n"], ["one", "\n", "two"]) == (["one", ""], True)


def test_the_beginning_of_a_stop_word_waits(byte_level):
    assert texts(byte_level, ["END"], ["a E", "N", "x"]) == (["a ", "", "ENx", ""], False)
    assert texts(byte_level, ["END"], ["a E", "N", "D b"]) == (["a ", "", ""], True)


def test_the_first_of_several_stop_words_counts(byte_level):
    assert texts(byte_level, ["c", "bc"], ["abcd"]) == (["a"], True)


def test_a_held_beginning_is_shown_at_the_end(byte_level):
    assert texts(byte_level, ["END"], ["an E"]) == (["an ", "E"], False)


@pytest.mark.parametrize("stop_word", ["is", "s", " is"])
def test_a_stop_word_within_a_token_leaves_what_is_before_it(sentencepiece, stop_word):
    what, is_ = (sentencepiece.tokenizer.token_to_id(token) for token in ("▁What", "▁is"))
    chunks, stopped = texts(sentencepiece, [stop_word], [[what], [is_]])

    assert stopped
    assert "".join(chunks) == " What is".removesuffix(stop_word)
