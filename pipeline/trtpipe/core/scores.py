"""The log-probabilities of one teacher-forced pass, as exchanged between the engines and the drift check."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from trtpipe.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

TOP_TOKENS = 20

_DTYPES = {
    "row_offsets": np.int64,
    "token_ids": np.int32,
    "observed": np.float32,
    "top_ids": np.int32,
    "top": np.float32,
    "argmax": np.int32,
}
# A log-probability computed in float32 may come out as a hair above zero.
_ROUNDING_NATS = 1e-4


@dataclass(frozen=True, eq=False)
class Scores:
    """R rows with N scored tokens in all; row r owns tokens row_offsets[r] to row_offsets[r + 1].

    Log-probabilities are in nats, over the whole vocabulary. Raises ValueError for parts that don't fit.
    """

    row_ids: tuple[str, ...]
    row_offsets: NDArray[np.int64]  # [R + 1]
    token_ids: NDArray[np.int32]  # [N]: the token that stands in the text
    observed: NDArray[np.float32]  # [N]: its log-probability
    top_ids: NDArray[np.int32]  # [N, 20]: the baseline's most likely tokens, also in a candidate's scores
    top: NDArray[np.float32]  # [N, 20]: this pass's log-probabilities of those tokens
    argmax: NDArray[np.int32]  # [N]: this pass's most likely token

    def __post_init__(self) -> None:
        fault = _shape_fault(self) or _value_fault(self)
        if fault:
            raise ValueError(fault)

    @property
    def tokens(self) -> int:
        return len(self.token_ids)

    def save(self, path: Path) -> None:
        """Write an npz that holds plain arrays only."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _DTYPES}
        with path.open("wb") as file:
            np.savez(file, row_ids=np.array(self.row_ids, dtype=np.str_), **arrays)


def load(path: Path) -> Scores:
    """Read scores. Raises ConfigError where the file is missing, damaged or not made by ``Scores.save``."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {field.name: archive[field.name] for field in fields(Scores)}
        row_ids = tuple(str(row_id) for row_id in arrays.pop("row_ids"))
        return Scores(row_ids=row_ids, **arrays)
    except FileNotFoundError:
        raise ConfigError("there are no scores", where=str(path), fix="run the scoring again") from None
    except (ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile) as fault:
        raise ConfigError(
            f"the scores can't be used: {fault}",
            where=str(path),
            fix="delete the file and run the scoring again",
        ) from None


def _shape_fault(scores: Scores) -> str | None:
    tokens = len(scores.token_ids)
    shapes: dict[str, tuple[int, ...]] = {
        "row_offsets": (len(scores.row_ids) + 1,),
        "token_ids": (tokens,),
        "observed": (tokens,),
        "top_ids": (tokens, TOP_TOKENS),
        "top": (tokens, TOP_TOKENS),
        "argmax": (tokens,),
    }
    for name, shape in shapes.items():
        array = getattr(scores, name)
        if array.dtype != _DTYPES[name] or array.shape != shape:
            wanted = np.dtype(_DTYPES[name])
            return f"{name} is {array.dtype}{list(array.shape)}, not {wanted}{list(shape)}"
    return None


def _value_fault(scores: Scores) -> str | None:
    if len(set(scores.row_ids)) != len(scores.row_ids):
        return "a row id stands twice"
    offsets = scores.row_offsets
    if offsets[0] != 0 or offsets[-1] != scores.tokens or (np.diff(offsets) < 1).any():
        return f"row_offsets do not divide {scores.tokens} tokens into rows of at least one"
    for name in ("token_ids", "top_ids", "argmax"):
        if (getattr(scores, name) < 0).any():
            return f"{name} holds a negative token id"
    for name in ("observed", "top"):
        array = getattr(scores, name)
        if not np.isfinite(array).all() or (array > _ROUNDING_NATS).any():
            return f"{name} holds a value that is no log-probability"
    if (np.diff(np.sort(scores.top_ids, axis=1), axis=1) == 0).any():
        return "top_ids names a token twice for one position"
    return None
