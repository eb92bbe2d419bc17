"""The generated dashboard and alert rules: reviewed files, sound expressions, metrics that exist."""

import json
from itertools import combinations

import pytest
import yaml

from expressions import selected
from trtpipe.triton_repo import metric_families as families
from trtpipe.triton_repo import monitoring
from trtpipe.triton_repo.monitoring_tables import ALERTS, PANELS

EXPRESSIONS = [
    *(expression for panel in PANELS for expression in panel.lines.values()),
    *(alert.when for alert in ALERTS),
]
# name -> label -> the values that it may have
KNOWN = {
    name: {family.label: set(family.values), "model": {"tensorrt_llm"}}
    for family in (*families.TENSORRT_LLM, *families.LOCAL)
    for name in ([f"{family.name}_bucket"] if family.kind == "histogram" else [family.name])
} | {name: {} for name in families.TRITON}


@pytest.mark.parametrize("name", [monitoring.DASHBOARD, monitoring.RULES])
def test_a_file_is_the_reviewed_one(name, golden):
    golden(f"monitoring/{name}", monitoring.files()[name])


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_is_read_and_names_metrics_that_exist(expression):
    metrics = selected(expression)

    assert metrics
    for name, matchers in metrics:
        assert name in KNOWN
        for label, value in matchers.items():
            assert value in KNOWN[name][label]


def test_what_is_wrong_in_an_expression_is_found():
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        selected("sum(rate(a[5m])")
    with pytest.raises(ValueError, match="expected type"):
        selected("rate(a)")


def test_the_local_engine_has_upstreams_names_for_what_upstream_counts():
    upstream = {family.name: family for family in families.TENSORRT_LLM}

    for family in families.LOCAL:
        if family.name.startswith("nv_"):
            theirs = upstream[family.name]
            assert (family.kind, family.label, family.buckets) == (theirs.kind, theirs.label, theirs.buckets)
            assert set(family.values) <= set(theirs.values)
        else:
            assert family.name.startswith("trtpipe_")


def test_histograms_alone_have_buckets_and_these_rise():
    for family in (*families.TENSORRT_LLM, *families.LOCAL):
        assert (family.kind == "histogram") == bool(family.buckets)
        assert list(family.buckets) == sorted(set(family.buckets))


def test_panels_lie_beside_each_other():
    places = [panel["gridPos"] for panel in json.loads(monitoring.files()[monitoring.DASHBOARD])["panels"]]

    for one, other in combinations(places, 2):
        assert abs(one["x"] - other["x"]) >= one["w"] or abs(one["y"] - other["y"]) >= one["h"]
    assert all(place["x"] + place["w"] <= 24 for place in places)


def test_the_rules_are_what_prometheus_reads():
    (group,) = yaml.safe_load(monitoring.files()[monitoring.RULES])["groups"]

    assert len({rule["alert"] for rule in group["rules"]}) == len(ALERTS)
    for rule in group["rules"]:
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"].keys() == {"severity"}
        assert rule["annotations"].keys() == {"summary", "description"}
