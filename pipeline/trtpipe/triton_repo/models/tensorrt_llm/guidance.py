"""What an answer must look like: TensorRT-LLM's two tensors, read for vLLM.

The guide's types are those of ``getGuidedDecodingParamsFromTensors`` in upstream's ``utils.cc``.
"""

from __future__ import annotations

from typing import Any

from parameters import RequestError

# Upstream's type -> the argument of vLLM's StructuredOutputsParams.
ARGUMENTS = {"json_schema": "json", "regex": "regex", "ebnf_grammar": "grammar"}
# Any JSON object; it needs no guide.
JSON = "json"
TYPES = ", ".join([JSON, *ARGUMENTS])


def read(guide_type: str | None, guide: str | None) -> dict[str, Any] | None:
    """Return vLLM's argument; None where an answer may look like anything. Raises RequestError."""
    if guide_type is None:
        if guide is not None:
            raise RequestError(f"guided_decoding_guide needs a guided_decoding_guide_type: {TYPES}")
        return None
    if guide_type == JSON:
        if guide:
            raise RequestError("guided_decoding_guide_type json takes no guide; with a schema it is json_schema")
        return {"json_object": True}
    if guide_type not in ARGUMENTS:
        raise RequestError(f"guided_decoding_guide_type is `{guide_type}`; it must be one of {TYPES}")
    if not guide:
        raise RequestError(f"guided_decoding_guide_type {guide_type} needs a guided_decoding_guide")
    return {ARGUMENTS[guide_type]: guide}
