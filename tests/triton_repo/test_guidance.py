"""What an answer must look like: which guides are taken, and with which words others are refused."""

import pytest


@pytest.mark.parametrize(
    ("guide_type", "guide", "expected"),
    [
        (None, None, None),
        ("json", None, {"json_object": True}),
        ("json", "", {"json_object": True}),
        ("json_schema", '{"type": "object"}', {"json": '{"type": "object"}'}),
        ("regex", "[0-9]+", {"regex": "[0-9]+"}),
        ("ebnf_grammar", 'root ::= "a"', {"grammar": 'root ::= "a"'}),
    ],
)
def test_upstreams_types_become_vllms_arguments(guide_type, guide, expected):
    from guidance import read

    assert read(guide_type, guide) == expected


@pytest.mark.parametrize(
    ("guide_type", "guide", "words"),
    [
        (None, "[0-9]", "needs a guided_decoding_guide_type: json, json_schema, regex, ebnf_grammar"),
        ("xml", "<a>", "is `xml`; it must be one of json,"),
        ("json", "{}", "with a schema it is json_schema"),
        ("json_schema", None, "json_schema needs a guided_decoding_guide"),
        ("regex", "", "regex needs a guided_decoding_guide"),
    ],
)
def test_what_is_refused(guide_type, guide, words):
    from guidance import read
    from parameters import RequestError

    with pytest.raises(RequestError, match=words):
        read(guide_type, guide)
