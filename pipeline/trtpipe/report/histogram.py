"""Counts over bins that grow by a factor, as columns; every column says its numbers."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from trtpipe.report.svg import drawing, element

WIDTH, HEIGHT = 480, 150
LEFT, RIGHT, TOP, BOTTOM = 10, 10, 8, 22
TICKS_ABOUT = 8


def histogram(counts: Mapping[int, int], label: str) -> Markup:
    """Draw ``counts``: lower edge of a bin -> how many are in it. Edges that nothing lies on are left out."""
    edges = sorted(counts)
    width = (WIDTH - LEFT - RIGHT) / len(edges)
    highest, total = max(counts.values()), sum(counts.values())
    floor = HEIGHT - BOTTOM
    columns = []
    for place, edge in enumerate(edges):
        height = counts[edge] / highest * (floor - TOP)
        text = f"from {edge:,}: {counts[edge]:,} ({counts[edge] / total:.1%})"
        x = LEFT + place * width
        columns.append(
            element(
                "g",
                element("title", text),
                element("rect", class_="bar built", x=x + 1, y=floor - height, width=max(width - 2, 1), height=height),
            )
        )
    step = max(1, -(-len(edges) // TICKS_ABOUT))
    ticks = [
        element("text", f"{edge:,}", x=LEFT + place * width + width / 2, y=HEIGHT - 6, text_anchor="middle")
        for place, edge in enumerate(edges)
        if place % step == 0
    ]
    line = element("line", class_="tick", x1=LEFT, x2=WIDTH - RIGHT, y1=floor, y2=floor)
    fullest = max(edges, key=lambda edge: counts[edge])
    spoken = f"{label}: {total:,} rows, from {edges[0]:,} to {edges[-1]:,} and more, most of them from {fullest:,}"
    return drawing(WIDTH, HEIGHT, spoken, *columns, line, *ticks)
