"""What is sent when: whole characters, and never a part of a stop word."""

import pytest


def texts(tokenizer, stop_words, pieces, tokens_min=0):
    """Send ``pieces`` one by one; return the text of each chunk, and whether a stop word ended it."""
    from answer import Answer
    from token_bytes import TokenBytes

    table = TokenBytes(tokenizer.tokenizer)
    answer = Answer(table, stop_words, tokens_min)
    chunks = []
    for piece in pieces:
        chunks.append(table.text(answer.add(tokenizer.encode(piece) if isinstance(piece, str) else piece)))
        if answer.stopped:
            assert answer.finish() == []
            return chunks, True
    chunks.append(table.text(answer.finish()))
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


def test_stop_words_may_hold_commas_and_line_ends(byte_level):
    assert texts(byte_level, ["a, b", "\n\n"], ["x a, ", "c\n", "\ny"]) == (["x ", "a, c", ""], True)


def test_a_special_token_can_be_a_stop_word(byte_level):
    """Its text is never shown, so it would not be found in what is."""
    end = byte_level.tokenizer.token_to_id("<end>")

    assert texts(byte_level, ["<end>"], ["ok", [end], "more"]) == (["ok", ""], True)
    assert texts(byte_level, ["other"], ["ok", [end], "more"]) == (["ok", "", "more", ""], False)


def test_stop_words_before_the_least_number_of_tokens_are_part_of_the_answer(byte_level):
    assert texts(byte_level, ["a"], ["a", "b", "a", "c"], tokens_min=2) == (["a", "b", ""], True)


def test_a_character_in_front_of_a_stop_word_in_the_same_token_is_kept_for_any_tokenizer(unigram):
    token = unigram.tokenizer.token_to_id("\u2581What")

    assert texts(unigram, ["hat"], [[token]]) == ([" W"], True)
