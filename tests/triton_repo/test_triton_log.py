"""The reason of a failed start is found above what Triton writes last."""

from trtpipe.triton_repo import triton_log

LOG = r"""I1129 18:00:12.797933 27358 model_lifecycle.cc:472] "loading: tensorrt_llm:1"
E1129 18:00:25.932898 27508 model_lifecycle.cc:642] "failed to load 'tensorrt_llm' version 1: no weights\n  at x"
I1129 18:00:25.932934 27508 model_lifecycle.cc:777] "failed to load 'tensorrt_llm'"
I1129 18:00:28.936313 27508 server.cc:345] "Timeout 17: Found 0 live models and 0 in-flight non-inference requests"
error: creating server: Internal - failed to load all models
"""


def test_a_model_that_does_not_load_is_named_with_its_reason(tmp_path):
    log = tmp_path / "log"
    log.write_text(LOG, encoding="utf-8")

    assert triton_log.why_ended(log).splitlines() == [
        "Triton ended: a model does not load",
        "  | tensorrt_llm: no weights   at x",
    ]


def test_without_such_a_reason_the_last_lines_are_shown(tmp_path):
    log = tmp_path / "log"
    log.write_text("one\nunknown option --x\n", encoding="utf-8")

    assert triton_log.why_ended(log) == "Triton ended while loading\n  | one\n  | unknown option --x"
