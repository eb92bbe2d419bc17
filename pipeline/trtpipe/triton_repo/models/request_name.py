"""What a request is called in the server's log, where it has no text: by the id that its client has given it.

Copies of this module run inside three of Triton's models.
"""

from __future__ import annotations

CHARACTERS_MAX = 128


def in_log(request_id: str) -> str:
    """Return the name; line ends and other signs are escaped, so that no id can look like a line of the log."""
    shown = request_id[:CHARACTERS_MAX].encode("unicode_escape").decode()
    return f"request {shown}" if shown else "request without an id"
