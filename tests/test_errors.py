"""Exit codes are distinct, errors survive the way through JSON, and several are told together."""

from __future__ import annotations

import pytest

from trtpipe import errors
from trtpipe.errors import ConfigError, EnvironmentUnfit, Problems, TrtpipeError

KINDS = TrtpipeError.__subclasses__()


def test_each_kind_has_an_exit_code_of_its_own() -> None:
    codes = [TrtpipeError.exit_code, *(kind.exit_code for kind in KINDS)]
    assert sorted(codes) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 130]


@pytest.mark.parametrize("kind", [TrtpipeError, *KINDS])
def test_an_error_comes_back_from_its_document(kind: type[TrtpipeError]) -> None:
    again = errors.from_document(kind("a", where="b", fix="c").document())
    assert type(again) is kind
    assert (again.what, again.where, again.fix) == ("a", "b", "c")


def test_the_text_has_what_where_and_fix() -> None:
    assert str(ConfigError("a", where="b", fix="c")) == "error: a\n  where: b\n  fix:   c"
    assert str(ConfigError("a")) == "error: a"


def test_several_problems_are_one_error() -> None:
    first, second, third = EnvironmentUnfit("a"), ConfigError("b"), ConfigError("c")
    with pytest.raises(Problems) as caught:
        errors.raise_all([first, Problems([second, third])])
    assert caught.value.each() == [first, second, third]
    assert caught.value.exit_code == 4
    assert str(caught.value) == "error: a\nerror: b\nerror: c"


def test_one_problem_is_itself_and_none_is_none() -> None:
    errors.raise_all([])
    with pytest.raises(ConfigError) as caught:
        errors.raise_all([Problems([ConfigError("a")])])
    assert type(caught.value) is ConfigError
