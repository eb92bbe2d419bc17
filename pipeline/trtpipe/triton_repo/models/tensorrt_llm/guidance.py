"""What an answer must look like, read for vLLM.

The types of guides are those of ``getGuidedDecodingParamsFromTensors`` in upstream's ``utils.cc``. They arrive as
preprocessing writes them (``guide_bytes`` of the contract): the type, a line feed, the guide, as the numbers of their
UTF-8 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parameters import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Upstream's type -> the argument of vLLM's StructuredOutputsParams.
ARGUMENTS = {"json_schema": "json", "regex": "regex", "ebnf_grammar": "grammar"}
# Any JSON object; it needs no guide.
JSON = "json"
TYPES = ", ".join([JSON, *ARGUMENTS])


def read(guide_bytes: Sequence[int]) -> dict[str, Any] | None:
    """Return vLLM's argument; None where an answer may look like anything. Raises RequestError."""
    if not guide_bytes:
        return None
    try:
        guide_type, _, guide = bytes(guide_bytes).decode("utf-8").partition("\n")
    except ValueError:
        raise RequestError("guide_bytes are not the bytes of a text; ask through the ensemble") from None
    if not guide_type:
        raise RequestError(f"guided_decoding_guide needs a guided_decoding_guide_type: {TYPES}")
    if guide_type == JSON:
        if guide:
            raise RequestError("guided_decoding_guide_type json takes no guide; with a schema it is json_schema")
        return {"json_object": True}
    if guide_type not in ARGUMENTS:
        raise RequestError(f"guided_decoding_guide_type is `{guide_type}`; it must be one of {TYPES}")
    if "\0" in guide:
        raise RequestError("guided_decoding_guide holds NUL")
    if not guide:
        raise RequestError(f"guided_decoding_guide_type {guide_type} needs a guided_decoding_guide")
    return {ARGUMENTS[guide_type]: guide}
