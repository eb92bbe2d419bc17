"""Scores: what is saved comes back, and nothing that can't be scores gets in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from trtpipe.core import scores
from trtpipe.core.scores import TOP_TOKENS, Scores
from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def some_scores() -> Scores:
    """Two rows, of one and two tokens."""
    return Scores(
        row_ids=("first", "zweite"),
        row_offsets=np.array([0, 1, 3], dtype=np.int64),
        token_ids=np.array([7, 8, 9], dtype=np.int32),
        observed=np.array([-0.5, -1.5, 0.0], dtype=np.float32),
        top_ids=np.tile(np.arange(TOP_TOKENS, dtype=np.int32), (3, 1)),
        top=np.full((3, TOP_TOKENS), -3.0, dtype=np.float32),
        argmax=np.array([0, 1, 2], dtype=np.int32),
    )


def test_saved_scores_come_back_and_two_savings_are_equal(tmp_path: Path) -> None:
    saved = some_scores()
    for name in ("a.npz", "b.npz"):
        saved.save(tmp_path / name)
    loaded = scores.load(tmp_path / "a.npz")
    assert loaded.row_ids == ("first", "zweite")
    assert loaded.tokens == 3
    for name in ("row_offsets", "token_ids", "observed", "top_ids", "top", "argmax"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(saved, name))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"observed": np.zeros(3)}, "observed is float64"),
        ({"argmax": np.zeros(2, dtype=np.int32)}, r"argmax is int32\[2\], not int32\[3\]"),
        ({"top": np.zeros((3, 5), dtype=np.float32)}, r"top is float32\[3, 5\]"),
        ({"row_ids": ("first", "first")}, "stands twice"),
        ({"row_ids": ("first",)}, r"row_offsets is int64\[3\], not int64\[2\]"),
        ({"row_offsets": np.array([0, 3, 3])}, "row_offsets do not divide 3 tokens"),
        ({"row_offsets": np.array([0, 1, 2])}, "row_offsets do not divide 3 tokens"),
        ({"row_offsets": np.array([1, 2, 3])}, "row_offsets do not divide 3 tokens"),
        ({"token_ids": np.array([1, -1, 2], dtype=np.int32)}, "negative token id"),
        ({"observed": np.array([0, np.nan, 0], dtype=np.float32)}, "observed holds a value"),
        ({"observed": np.array([0, -np.inf, 0], dtype=np.float32)}, "observed holds a value"),
        ({"top": np.full((3, TOP_TOKENS), 0.3, dtype=np.float32)}, "top holds a value"),
        ({"top_ids": np.zeros((3, TOP_TOKENS), dtype=np.int32)}, "names a token twice"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        replace(some_scores(), **changes)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        scores.load(tmp_path / "none.npz")
    assert str(tmp_path / "none.npz") in str(caught.value)


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    whole, damaged, foreign = (tmp_path / name for name in ("whole.npz", "damaged.npz", "foreign.npz"))
    some_scores().save(whole)
    damaged.write_bytes(whole.read_bytes()[:500])
    np.savez(foreign, something=np.zeros(3))
    for path in (damaged, foreign):
        with pytest.raises(ConfigError, match="can't be used"):
            scores.load(path)


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "pickled.npz"
    arrays: dict[str, Any] = {"row_ids": np.array([{}], dtype=object)}
    np.savez(path, **arrays)
    with pytest.raises(ConfigError, match="allow_pickle=False"):
        scores.load(path)
