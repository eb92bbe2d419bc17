"""Base and scaling of the rotary embedding, from either form of config.json."""

from __future__ import annotations

from typing import Any

DEFAULT_BASE = 10000.0


def rotary_of(config: dict[str, Any]) -> tuple[float, dict[str, Any] | None]:
    """Return the base and the scaling parameters (None where there is no scaling).

    transformers 5 writes `rope_parameters`, older ones `rope_theta` and `rope_scaling`, with `rope_type` once `type`.
    """
    parameters = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    base = float(parameters.pop("rope_theta", None) or config.get("rope_theta") or DEFAULT_BASE)
    kind = parameters.get("rope_type") or parameters.get("type") or "default"
    return base, None if kind == "default" else {**parameters, "rope_type": kind, "type": kind}


def older_form(config: dict[str, Any], dtype: str) -> dict[str, Any]:
    """Return a config.json that transformers 4 reads as well: it knows no `rope_parameters` and no `dtype`."""
    base, scaling = rotary_of(config)
    return config | {"dtype": dtype, "torch_dtype": dtype, "rope_theta": base, "rope_scaling": scaling}
