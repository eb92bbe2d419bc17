"""Control characters, personal data and near copies: what goes, what stays, and that it is counted."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.tiny import row
from trtpipe.calibration import near
from trtpipe.calibration.clean import clean
from trtpipe.calibration.ledger import Ledger, Shortfall, refuse_short
from trtpipe.calibration.masking import masked
from trtpipe.errors import ConfigError, TrtpipeError

WORDS = [f"word{number}" for number in range(60)]


def test_control_characters_go_and_line_ends_stay() -> None:
    ledger = Ledger()
    rows = [row("a\x00b\x1b\n\tc\x85"), row("\x07"), row("ab\n\tc"), row("d\x7f", response="e\x01")]
    done = clean(rows, mask_personal_data=False, seed=0, ledger=ledger)
    assert sorted(one.messages[0].content for one in done.rows) == ["ab\n\tc", "d"]
    assert {one.response for one in done.rows} == {None, "e"}
    assert (done.rows_with_control_characters, done.control_characters_removed) == (3, 6)
    assert ledger.dropped == {"blank": 1, "exact duplicate": 1}


@pytest.mark.parametrize(
    ("text", "after", "kind"),
    [
        ("write to jo.doe+x@mail.example.org, please", "write to <email>, please", "email"),
        ("card 4111 1111 1111 1111 please", "card <card> please", "card"),
        ("IBAN DE89 3704 0044 0532 0130 00.", "IBAN <iban>.", "iban"),
        ("from 192.168.10.7 at", "from <ip> at", "ip"),
        ("call +49 30 901820 now", "call <phone> now", "phone"),
        ("key sk-abcdefghijklmnop1234", "key <key>", "key"),
    ],
)
def test_personal_data_is_masked_by_kind(text: str, after: str, kind: str) -> None:
    counts: Counter[str] = Counter()
    assert masked(text, counts) == after
    assert counts == {kind: 1}


@pytest.mark.parametrize(
    "text",
    ["4111 1111 1111 1112", "DE89 ABCD 0044 0532 0130 01", "version 1.2.3.400", "10.5.3", "2026-07-26 10:00:01", "a@b"],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert masked(text, Counter()) == text


def test_masking_comes_before_copies_are_looked_for() -> None:
    ledger = Ledger()
    rows = [row("mail a@x.org"), row("mail b@x.org", response="to c@x.org")]
    done = clean(rows, mask_personal_data=True, seed=0, ledger=ledger)
    assert len(done.rows) == 1
    assert ledger.dropped == {"exact duplicate": 1}
    assert (done.masked, done.rows_masked) == ({"email": 3}, 2)


def test_a_near_copy_is_left_out_and_the_shared_system_prompt_is_not_compared() -> None:
    text = " ".join(WORDS)
    rows = [row(text), row(text + " please"), row("Other: " + " ".join(reversed(WORDS))), row(text.upper())]
    kept, copies = near.distinct(rows, 0.8)
    assert (kept, copies) == ([rows[0], rows[2]], 2)
    assert near.distinct(rows, 1.0)[1] == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS[:6]), min_size=3, max_size=8), max_size=25))
def test_what_is_called_a_copy_is_one(texts: list[list[str]]) -> None:
    rows = [row(" ".join(words)) for words in texts]
    kept, copies = near.distinct(rows, 0.8)
    assert len(kept) + copies == len(rows)
    known = [near.shingles(one.asked) for one in kept]
    for one in rows:
        if one not in kept:
            assert max(near.similarity(near.shingles(one.asked), other) for other in known) >= 0.8


def test_neighbours_are_found_exactly() -> None:
    neighbours = near.Neighbours([row(" ".join(WORDS))], 0.8)
    assert neighbours.near(row(" ".join(WORDS[:55])))
    assert not neighbours.near(row(" ".join(WORDS[:30])))


def test_the_ledger_must_add_up() -> None:
    ledger = Ledger(rows=10, kept=3, cut=2, windowed=1, dropped=Counter({"blank": 4}))
    ledger.close()
    assert str(ledger) == "10 row(s): 3 kept, 2 cut, 1 windowed, 4 dropped (4 blank)"
    ledger.kept += 1
    with pytest.raises(TrtpipeError, match=r"does not add up: 10 row\(s\), 11"):
        ledger.close()


def test_a_shortfall_names_both_numbers_and_the_ledger() -> None:
    with pytest.raises(ConfigError, match=r"30 of 128 prompts.*10 row\(s\)") as caught:
        refuse_short([Shortfall("prompts", 128, 30)], Ledger(rows=10), "log")
    assert "prompts.allow_short" in str(caught.value.fix)
