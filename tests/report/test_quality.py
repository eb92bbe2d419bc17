"""The calibration quality report."""

from __future__ import annotations

import json
from collections.abc import Callable

from report import synthetic
from report.pages import ROOT, quality_page
from trtpipe.report import quality
from trtpipe.report.layer_lines import lines


def test_the_page(golden: Callable[[str, str], None]) -> None:
    golden("report/quality.html", quality_page())


def test_the_document_is_json_with_every_layer_and_segment() -> None:
    record = synthetic.outcomes(ROOT)[1].artifact.record
    document = json.loads(json.dumps(quality.document(record, synthetic.verdict("mathematics")), allow_nan=False))
    assert document["layers"] == synthetic.layers()
    assert document["heldout"]["segments"]["mathematics"]["kl_top20_nats"]["value"] == 0.31
    assert "per_layer" not in document["figures"]


def test_without_a_drift_check_it_claims_nothing_about_answers() -> None:
    page = quality_page(checked=False)
    assert "No drift check has been made on it yet" in page
    assert "trtpipe check-drift" in page


def test_a_quantizer_without_errors_by_layer_says_so() -> None:
    record = synthetic.outcomes(ROOT)[1].artifact.record
    bare = record.model_copy(update={"figures": {"per_layer": [], "peak_rss_mib": 1, "calibration_tokens": 5}})
    page = quality.page(quality.document(bare, None))
    assert "This quantizer reports no errors by layer." in page
    assert "Output error, plain rounding" not in page


def test_a_line_for_each_series_that_has_values() -> None:
    chart = lines("Alpha", "", "", {"attention input": {0: 0.5, 1: 0.25}, "none": {}, "mlp": {1: 1.0}})
    assert chart is not None
    assert chart.legend == [("attention input", "series-0"), ("mlp", "series-1")]
    assert chart.plot.count("<polyline") == 2
    assert "attention input, layer 1: 0.25" in chart.plot
    assert lines("Damping", "", " %", {"mlp": {}}) is None
