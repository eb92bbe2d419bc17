"""Expressions in Prometheus's language, read by a parser of its grammar."""

from __future__ import annotations

from typing import Any


def selected(expression: str) -> list[tuple[str, dict[str, str]]]:
    """Return the metrics that an expression reads, each with what it asks of labels. Raises ValueError."""
    # Not at the top: where the parser is not installed, the tests that need it fail, and no others.
    import promql_parser

    found: list[tuple[str, dict[str, str]]] = []

    def visit(node: Any) -> None:
        selector = getattr(node, "vector_selector", node)
        if isinstance(selector, promql_parser.VectorSelector):
            found.append((selector.name, {one.name: one.value for one in selector.matchers.matchers}))

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found
