"""What the scripts share with the rest."""

from __future__ import annotations

from trtpipe.core import scores
from trtpipe.engines.scoring import positions


def test_as_many_tokens_are_kept_as_a_file_of_scores_holds() -> None:
    assert positions.TOP_TOKENS == scores.TOP_TOKENS
