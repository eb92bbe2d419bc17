"""What a prefix cache would save, and which text keeps it from it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from calibration.tiny import chat_tokenizer
from trtpipe.calibration import prefix, volatile
from trtpipe.core.chat import ChatTokenizer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def words(tmp_path: Path) -> ChatTokenizer:
    """A tokenizer for which each word between blanks is a token."""
    chat_tokenizer(tmp_path)
    vocabulary = {"?": 0, "<end>": 1} | {f"w{number}": number + 2 for number in range(5000)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    settings = tmp_path / "tokenizer_config.json"
    settings.write_text('{"eos_token": "<end>"}')
    (tmp_path / "config.json").write_text("{}")
    return ChatTokenizer.load(tmp_path)


def system_prompt(stamp: str, at: int) -> str:
    texts = [f"w{number}" for number in range(600)]
    return " ".join([*texts[:at], stamp, *texts[at:]])


def test_o61_a_time_at_token_20_leaves_no_whole_block_and_at_590_eighteen(words: ChatTokenizer) -> None:
    for at, blocks in ((20, 0), (590, 18)):
        times = ("2026-07-26T10:00:01Z", "2026-07-26T10:00:02Z")
        ids = [
            [token or 1000 + index for token in words.encode(system_prompt(time, at))]
            for index, time in enumerate(times)
        ]
        assert prefix.reuse(ids, 32).reused_tokens == blocks * 32
        found = volatile.find([system_prompt(time, at) for time in times])
        assert [(field.kind, field.values) for field in found] == [("time", 2)]


def test_o61_the_field_its_place_and_what_moving_it_regains(tmp_path: Path) -> None:
    tokenizer = chat_tokenizer(tmp_path)  # a token per byte
    lead, rest = "x" * 20, "y" * 580
    texts = [f"{lead}2026-0{number % 9 + 1}-26T10:00:01Z{rest} question {number}" for number in range(40)]
    found = prefix.analyse(texts, tokenizer, 32)
    (cut,) = found.cuts
    assert (cut.kind, cut.token, cut.whole_blocks_before, cut.prompts_share) == ("time", 20, 0, 1.0)
    assert found.reuse.share < 0.8
    moved = prefix.reuse([list((text[:20] + text[40:] + text[20:40]).encode()) for text in texts], 32)
    assert cut.share_if_moved == pytest.approx(moved.share)
    assert cut.share_regained == pytest.approx(moved.share - found.reuse.share)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("time", lambda rng: f"{rng.randint(10, 23)}:{rng.randint(10, 59)}:{rng.randint(10, 59)}"),
        ("time", lambda rng: str(rng.randint(1_700_000_000, 1_799_999_999))),
        ("date", lambda rng: f"2026-{rng.randint(10, 12)}-{rng.randint(10, 28)}"),
        ("date", lambda rng: f"{rng.randint(1, 28)} July 2026"),
        ("uuid", lambda rng: "-".join(f"{rng.getrandbits(4 * n):0{n}x}" for n in (8, 4, 4, 4, 12))),
        ("request id", lambda rng: f"req_{rng.getrandbits(60):x}"),
        ("counter", lambda rng: f"#{rng.randint(1, 9999)}"),
    ],
)
def test_every_kind_is_found(kind: str, value: object) -> None:
    rng = random.Random(0)  # noqa: S311 - reproducible, nothing secret
    texts = [f"You help. Now: {value(rng)} end of it" for _ in range(50)]  # type: ignore[operator]
    assert [field.kind for field in volatile.find(texts)] == [kind]


def test_what_stays_the_same_is_not_volatile() -> None:
    assert volatile.find(["Since 2019-01-01 at 10:00, case 123e4567-e89b-12d3-a456-426614174000"] * 50) == []


def test_the_last_token_is_always_computed() -> None:
    assert prefix.reuse([[1] * 32, [1] * 32, [1] * 33], 32).reused_tokens == 32


@given(st.lists(st.lists(st.integers(0, 1), max_size=12), max_size=12), st.integers(1, 4))
def test_reuse_is_what_a_plain_cache_gives(prompts: list[list[int]], block: int) -> None:
    cache: set[tuple[int, ...]] = set()
    reused = 0
    for ids in prompts:
        length = 0
        while length + block < len(ids) and tuple(ids[: length + block]) in cache:
            length += block
        reused += length
        cache |= {tuple(ids[:end]) for end in range(block, len(ids) + 1, block)}
    assert prefix.reuse(prompts, block) == prefix.Reuse(len(prompts), sum(map(len, prompts)), reused)


def test_what_half_of_the_prompts_begin_with(tmp_path: Path) -> None:
    tokenizer = chat_tokenizer(tmp_path)
    texts = ["a" * 40 + str(number) * 10 for number in range(6)] + ["b" * 50] * 3
    assert prefix.analyse(texts, tokenizer, 16).shared_by_most_tokens == 32
    assert prefix.analyse([], tokenizer, 16).shared_by_most_tokens == 0
