"""What the code of a model in Python says of itself, without running it."""

from __future__ import annotations

import ast
from pathlib import Path


def texts(config: Path) -> frozenset[str]:
    """Return every text in the code beside a ``config.pbtxt``; a parameter that is in none of it is not read.

    Empty where there is no code, or none that can be parsed.
    """
    found: set[str] = set()
    for path in config.parent.glob("*/**/*.py") if config.name == "config.pbtxt" else ():
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        found |= {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    return frozenset(found)
