"""Where an answer may be cut: after whole characters, and after one more token where a character does not go on."""

import time

import pytest

BYTES_OF_A_CHARACTER = list("语".encode())


@pytest.fixture
def runs(sentencepiece):
    """Return the ids and the text of the runs that a row of byte tokens falls into."""
    from detokenizer import Runs
    from token_bytes import TokenBytes

    def cut(ids):
        growing = Runs(TokenBytes(sentencepiece.tokenizer))
        found = [run for token in ids for run in growing.add(token)] + growing.finish()
        return [(run.ids, run.text) for run in found]

    return cut


def test_a_character_of_three_tokens_is_one_run(runs):
    assert runs([*BYTES_OF_A_CHARACTER, 0x61]) == [(BYTES_OF_A_CHARACTER, "语"), ([0x61], "a")]


def test_bytes_that_nothing_can_complete_are_runs_at_once(runs):
    assert runs([0x80, 0xC0, 0xFF]) == [([0x80], "\ufffd"), ([0xC0], "\ufffd"), ([0xFF], "\ufffd")]


def test_an_incomplete_character_waits_for_one_token_only(sentencepiece):
    from detokenizer import Runs
    from token_bytes import TokenBytes

    growing = Runs(TokenBytes(sentencepiece.tokenizer))

    assert growing.add(0xE8) == []
    for _ in range(100):
        (run,) = growing.add(0xE8)
        assert (run.ids, run.text) == ([0xE8], "\ufffd")


def test_an_unfinished_character_at_the_end_is_shown(runs):
    assert runs(BYTES_OF_A_CHARACTER[:2]) == [(BYTES_OF_A_CHARACTER[:2], "\ufffd")]


def test_the_replacement_character_itself_is_a_character_like_others(runs):
    assert runs([0xEF, 0xBF, 0xBD]) == [([0xEF, 0xBF, 0xBD], "\ufffd")]


def test_special_tokens_are_written_out_for_the_search_of_stop_words(runs, sentencepiece):
    end = sentencepiece.tokenizer.token_to_id("</s>")

    assert runs([0x61, end]) == [([0x61], "a"), ([end], "</s>")]


def test_a_token_costs_the_same_at_the_end_of_a_long_answer(byte_level):
    """By the clock of the process, with room for a busy machine: growing work would cost a hundred times as much."""
    from answer import Answer
    from token_bytes import TokenBytes

    answer = Answer(TokenBytes(byte_level.tokenizer), ["\n\nUser:", "STOP"])
    ids = byte_level.encode("Some words, 语言. ") * 200

    def spent_s() -> float:
        started = time.process_time()
        for token in ids:
            answer.add([token])
        return time.process_time() - started

    first_s = spent_s()
    for _ in range(8):
        last_s = spent_s()
    assert last_s < 3 * first_s
