"""Turn a template and its values into one HTML document that loads nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from trtpipe.report import wording


def render(template: str, **values: Any) -> str:
    """Render ``templates/<template>.html.jinja``; every value is escaped unless it is Markup."""
    return _environment().get_template(f"{template}.html.jinja").render(values)


@lru_cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("trtpipe.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (
        wording.change,
        wording.duration,
        wording.fingerprint,
        wording.margin,
        wording.measured,
        wording.moment,
        wording.number,
        wording.percent,
        wording.shown,
        wording.size,
        wording.words,
    )
    environment.filters |= {function.__name__: function for function in filters}
    return environment
