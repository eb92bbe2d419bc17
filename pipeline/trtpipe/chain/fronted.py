"""What the front needs to know of a release and the config."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING

from trtpipe.chain import released
from trtpipe.core.chat import ChatTokenizer
from trtpipe.errors import ConfigError
from trtpipe.front.settings import Limits, Served
from trtpipe.triton_repo import contract

if TYPE_CHECKING:
    from trtpipe.config.load import Workspace
    from trtpipe.core.artifacts import Artifact

API_KEY = "TRTPIPE_API_KEY"


def served(space: Workspace, release: Artifact, triton_url: str, api_key: str | None) -> Served:
    """Build it. ``api_key``: of the environment.

    Raises ConfigError where an open address would have no key, or the release can't count tokens.
    """
    serving = space.config.serving
    if not api_key and not is_local(serving.front_host):
        raise ConfigError(
            f"the front would answer everybody who reaches {serving.front_host}: there is no API key",
            where="serving.front_host",
            fix=f"set the environment variable {API_KEY}, or listen on 127.0.0.1",
        )
    _require_counts(release.path / "model_repository" / contract.BLS.name / "config.pbtxt")
    found = released.read(release)
    front = serving.front
    return Served(
        model=front.model_name or Path(space.config.model).name,
        created=int((release.path / "record.json").stat().st_mtime),
        triton_url=triton_url,
        tokenizer=ChatTokenizer.load(found.tokenizer, date=release.record.parts.parameters.get("template_date")),
        limits=Limits(
            context_tokens=found.context_tokens,
            answer_tokens=min(front.answer_tokens_max, found.context_tokens - 1),
            body_bytes=front.body_kib_max * 1024,
            requests_in_flight=front.requests_max,
            request_s=front.request_limit_s,
            drain_s=front.drain_s,
        ),
        api_key=api_key or None,
    )


def _require_counts(config: Path) -> None:
    """Raise ConfigError where a release would refuse each of the front's requests for what it asks to be told."""
    text = config.read_text(encoding="utf-8")
    if missing := [row.name for row in contract.COUNTS if f'"return_{row.name}"' not in text]:
        raise ConfigError(
            f"the release does not count tokens: it has no {', '.join(missing)}; an earlier trtpipe packaged it",
            where=str(config),
            fix="`trtpipe run` packages it anew; `trtpipe serve --no-front` serves it as it is",
        )


def is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
