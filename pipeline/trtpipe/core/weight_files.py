"""Whether the safetensors files of a model folder are whole: seen from their headers, without reading a weight."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trtpipe.errors import ConfigError, TrtpipeError

if TYPE_CHECKING:
    from pathlib import Path

INDEX = "model.safetensors.index.json"
HEADER_BYTES_MAX = 100_000_000  # the limit of the safetensors library
FETCH_AGAIN = "fetch the file again, and compare its size with the source's"


def faults(folder: Path) -> list[TrtpipeError]:
    """Return a problem for each file that is cut off or damaged, and for the files that the index names in vain."""
    problems: list[TrtpipeError] = []
    for path in sorted(folder.glob("*.safetensors")):
        fault = _fault(path)
        if fault:
            problems.append(ConfigError(fault, where=str(path), fix=FETCH_AGAIN))
    missing = [name for name in _indexed(folder / INDEX) if not (folder / name).is_file()]
    if missing:
        problems.append(
            ConfigError(
                f"{len(missing)} weight file(s) of the index are missing: {', '.join(missing[:3])}",
                where=str(folder / INDEX),
                fix="fetch them too",
            )
        )
    return problems


def names(path: Path) -> set[str]:
    """Return the tensors that a file holds, from its header. Raises ConfigError where the file is not whole."""
    if fault := _fault(path):
        raise ConfigError(fault, where=str(path), fix=FETCH_AGAIN)
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return set(header) - {"__metadata__"}


def _fault(path: Path) -> str | None:
    """Compare a file's size with its header: 8 bytes of length N, N bytes of JSON, then the tensors end to end."""
    size_bytes = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size_bytes < 8 or length > min(size_bytes - 8, HEADER_BYTES_MAX):
            return f"the file is cut off within its header: {size_bytes} bytes"
        try:
            header = json.loads(file.read(length))
            end = max((t["data_offsets"][1] for name, t in header.items() if name != "__metadata__"), default=0)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            return "the file's header is damaged"
    expected = 8 + length + end
    if size_bytes != expected:
        return f"the file is {'cut off' if size_bytes < expected else 'too long'}: {size_bytes} bytes, not {expected}"
    return None


def _indexed(index: Path) -> list[str]:
    """Return the file names in the index; none where there is no readable one, which single-file models don't have."""
    try:
        return sorted(set(map(str, json.loads(index.read_text("utf-8"))["weight_map"].values())))
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError("the index is damaged", where=str(index), fix=FETCH_AGAIN) from None
