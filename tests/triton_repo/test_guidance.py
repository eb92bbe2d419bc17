"""What an answer must look like: which guides are taken, and with which words others are refused."""

import pytest


def read(guide_type, guide):
    """Read a guide as preprocessing hands it over."""
    from guidance import read
    from prompt import guide_bytes

    return read(guide_bytes(guide_type, guide))


@pytest.mark.parametrize(
    ("guide_type", "guide", "expected"),
    [
        ("", "", None),
        ("json", "", {"json_object": True}),
        ("json_schema", '{"type":\n"object"}', {"json": '{"type":\n"object"}'}),
        ("regex", "[0-9]+€", {"regex": "[0-9]+€"}),
        ("ebnf_grammar", 'root ::= "a"', {"grammar": 'root ::= "a"'}),
    ],
)
def test_upstreams_types_become_vllms_arguments(guide_type, guide, expected):
    assert read(guide_type, guide) == expected


@pytest.mark.parametrize(
    ("guide_type", "guide", "words"),
    [
        ("", "[0-9]", "needs a guided_decoding_guide_type: json, json_schema, regex, ebnf_grammar"),
        ("xml", "<a>", "is `xml`; it must be one of json,"),
        ("json", "{}", "with a schema it is json_schema"),
        ("json_schema", "", "json_schema needs a guided_decoding_guide"),
        ("regex", "", "regex needs a guided_decoding_guide"),
        ("regex", "a\0b", "holds NUL"),
    ],
)
def test_what_is_refused(guide_type, guide, words):
    from parameters import RequestError

    with pytest.raises(RequestError, match=words):
        read(guide_type, guide)


@pytest.mark.parametrize("numbers", [[300], [-1], [0xFF, 0x0A]])
def test_what_are_no_bytes_of_a_text_is_refused(numbers):
    from guidance import read
    from parameters import RequestError

    with pytest.raises(RequestError, match="not the bytes of a text"):
        read(numbers)
