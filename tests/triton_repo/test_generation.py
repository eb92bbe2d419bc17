"""Requests to the engine: what is taken, and what is refused with which words."""

import json
from types import SimpleNamespace
from typing import Any

import pytest


def read(**changes: Any) -> Any:
    from generation import Limits, read

    values = {"input_ids": [5, 6, 7], "input_lengths": [3], "request_output_len": [10], **changes}
    return read(values, Limits(tokens=64, vocabulary=100, eos_ids=frozenset({2, 3})))


def test_without_options_an_answer_is_greedy_and_in_one_piece():
    generation = read()

    assert generation.prompt_ids == [5, 6, 7]
    assert generation.answer_tokens_max == 10
    assert generation.end_ids == {2, 3}
    assert generation.stop_words == generation.bad_words == []
    assert generation.answer_tokens_min == 0
    assert not generation.streaming
    assert generation.sampling == {
        "temperature": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"temperature": [0.7]}, {"temperature": 0.0}),
        ({"temperature": [0.7], "runtime_top_k": [1]}, {"temperature": 0.0}),
        ({"temperature": [0.0], "runtime_top_k": [50]}, {"temperature": 0.0}),
        ({"runtime_top_k": [50]}, {"temperature": 1.0, "top_k": 50, "top_p": 1.0, "seed": None}),
        (
            {"temperature": [0.5], "runtime_top_p": [0.9], "seed": [2**64 - 1]},
            {"temperature": 0.5, "top_k": 0, "top_p": 0.9, "seed": 2**64 - 1},
        ),
    ],
)
def test_sampling_is_asked_for_by_top_k_or_top_p(options, expected):
    sampling = read(**options).sampling

    assert {name: sampling[name] for name in sampling if "penalty" not in name} == expected


@pytest.mark.parametrize(("end_id", "expected"), [(2, {2, 3}), (9, {9}), (-1, set())])
def test_end_id_names_the_models_ends_another_or_none(end_id, expected):
    assert read(end_id=[end_id]).end_ids == expected


def test_stop_words_are_cut_at_their_ends():
    assert read(stop_words_list=[10, 11, 12, 2, 3, -1]).stop_words == [[10, 11], [12]]
    assert read(bad_words_list=[10, 11, 12, 2, 3, -1]).bad_words == [[10, 11], [12]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"input_ids": []}, "empty"),
        ({"input_lengths": [2]}, "input_lengths is 2, input_ids holds 3"),
        ({"input_ids": [5, 6, 100]}, "100 is no token; ids are 0 to 99"),
        ({"request_output_len": [0]}, "at least 1"),
        ({"request_output_len": [62]}, "3 prompt tokens + 62 requested answer tokens = 65; this engine takes 64"),
        ({"beam_width": [4]}, "beam_width is 4"),
        ({"min_tokens": [11]}, "min_tokens is 11"),
        ({"temperature": [-1.0]}, "temperature is -1"),
        ({"temperature": [float("nan")]}, "temperature is nan"),
        ({"runtime_top_p": [1.5]}, "runtime_top_p is 1.5"),
        ({"end_id": [100]}, "end_id: 100 is no token"),
        ({"stop_words_list": [10, 11, 3, -1]}, "stop_words_list is damaged"),
        ({"stop_words_list": [10, 11, 1, 1]}, "stop_words_list is damaged"),
        ({"bad_words_list": [10, 11, 3, -1]}, "bad_words_list is damaged"),
        ({"bad_words_list": [100, 1]}, "bad_words_list: 100 is no token"),
        ({"request_output_len": [5, 6]}, "has 2 values"),
    ],
)
def test_what_is_refused(changes, words):
    from parameters import RequestError

    with pytest.raises(RequestError, match=words.replace("+", r"\+")):
        read(**changes)


def check(timeout_us: int = 0, **fields: Any) -> None:
    from parameters import refuse_unread

    refuse_unread(SimpleNamespace(parameters=lambda: json.dumps(fields), timeout=lambda: timeout_us))


def test_unknown_fields_are_named():
    from parameters import RequestError

    check(id="7", image_url="", triton_enable_empty_final_response=True)
    with pytest.raises(RequestError, match="tempreature, top_kk"):
        check(top_kk=0, tempreature=0.5)


@pytest.mark.parametrize("name", ["timeout", "priority", "sequence_id", "sequence_start", "sequence_end"])
def test_what_triton_knows_and_nothing_does_is_refused(name):
    from parameters import RequestError

    check(**{name: 0})
    with pytest.raises(RequestError, match=f"{name} has no effect: "):
        check(**{name: 1})


def test_a_time_limit_over_grpc_is_no_parameter_and_refused_too():
    from parameters import RequestError

    with pytest.raises(RequestError, match="timeout has no effect"):
        check(timeout_us=1_000_000)


def test_a_stop_ends_the_request_of_its_id():
    from generation import is_stop
    from parameters import RequestError

    assert is_stop({"stop": [True]}, "7")
    assert not is_stop({"stop": [False]}, "")
    assert not is_stop({}, "7")
    with pytest.raises(RequestError, match="stop needs an id"):
        is_stop({"stop": [True]}, "")


@pytest.mark.parametrize(
    ("wanted", "counts"),
    [
        ({}, {}),
        ({"return_num_input_tokens": [False]}, {}),
        ({"return_num_input_tokens": [True]}, {"num_input_tokens": 3}),
        ({"return_num_output_tokens": [True]}, {"num_output_tokens": 7}),
    ],
)
def test_counts_are_given_where_they_are_asked_for(wanted, counts):
    assert read(**wanted).counts(7) == counts


@pytest.mark.parametrize("end_id", [[-1], [7]])
def test_a_guided_answer_ends_with_the_models_own_tokens(end_id):
    from parameters import RequestError

    guide = list(b"regex\n[0-9]+")
    assert read(guide_bytes=guide).end_ids == read(guide_bytes=guide, end_id=[2]).end_ids == {2, 3}
    with pytest.raises(RequestError, match="leave end_id out"):
        read(guide_bytes=guide, end_id=end_id)
