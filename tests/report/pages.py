"""Both pages of the synthetic run, and what is in a page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from report import synthetic
from trtpipe.report import drift, overview, quality

ROOT = Path("/workspace")


def drift_page(**changes: Any) -> str:
    return drift.page(synthetic.verdict(**changes))


def quality_page(note: str = "a note", checked: bool = True, **changes: Any) -> str:
    record = synthetic.outcomes(ROOT)[1].artifact.record.model_copy(update={"notes": [note]})
    return quality.page(quality.document(record, synthetic.verdict(**changes) if checked else None))


def overview_page(current: str | None = None, note: str = "a note", **changes: Any) -> str:
    return overview.page(
        synthetic.outcomes(ROOT, note),
        synthetic.verdict(**changes),
        folder=ROOT / ".trtpipe",
        current=current,
        key_figures=synthetic.KEY_FIGURES,
        next_steps=[overview.NextStep("trtpipe status", "see what is served")],
    )


class Elements(HTMLParser):
    """Collects every start tag with its attributes, and checks that what opens is closed."""

    VOID = frozenset({"meta", "link", "br", "col"})
    BARE = frozenset({"path", "rect", "circle"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.BARE, f"<{tag}/> does not close itself in HTML"
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def attributes(self, name: str) -> list[str | None]:
        return [attributes[name] for _, attributes in self.found if name in attributes]
