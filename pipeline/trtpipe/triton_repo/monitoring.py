"""The dashboard and the alert rules of a release, from ``monitoring_tables``."""

from __future__ import annotations

import json
from typing import Any

import yaml

from trtpipe.triton_repo.monitoring_tables import ALERTS, PANELS, Alert, Panel

DASHBOARD = "grafana-dashboard.json"
RULES = "prometheus-alerts.yaml"
# Of Grafana's documents: panels of this form are read since its release 10.
SCHEMA = 39
# Grafana's grid is 24 columns wide.
PANEL_WIDTH, PANEL_HEIGHT = 8, 8
# Grafana's names of units; what it has none for is written as a suffix.
UNITS = {"tokens/s": "suffix: tokens/s", "tokens": "suffix: tokens", "blocks": "suffix: blocks"}
SOURCE = {"type": "prometheus", "uid": "${source}"}


def files() -> dict[str, str]:
    """Return the files by name."""
    return {
        DASHBOARD: json.dumps(_dashboard(), indent=2) + "\n",
        RULES: yaml.safe_dump(_rules(), sort_keys=False, width=120),
    }


def _dashboard() -> dict[str, Any]:
    return {
        "uid": "trtpipe",
        "title": "trtpipe",
        "description": "A release of trtpipe: engine, KV cache, latencies. For Prometheus on Triton's metrics port.",
        "tags": ["trtpipe", "triton"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}],
        },
        "panels": [_panel(place, panel) for place, panel in enumerate(PANELS)],
    }


def _panel(place: int, panel: Panel) -> dict[str, Any]:
    across = 24 // PANEL_WIDTH
    return {
        "id": place + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.meaning,
        "datasource": SOURCE,
        "gridPos": {
            "x": place % across * PANEL_WIDTH,
            "y": place // across * PANEL_HEIGHT,
            "w": PANEL_WIDTH,
            "h": PANEL_HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": UNITS.get(panel.unit, panel.unit), "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": expression, "legendFormat": name}
            for number, (name, expression) in enumerate(panel.lines.items())
        ],
    }


def _rules() -> dict[str, Any]:
    return {"groups": [{"name": "trtpipe", "rules": [_rule(alert) for alert in ALERTS]}]}


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.when,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.what, "description": alert.fix},
    }
