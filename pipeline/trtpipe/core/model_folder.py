"""A Hugging Face model folder given by a user: is it usable, and what is its identity?"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trtpipe.core import digest, weight_files
from trtpipe.core.store import write_json
from trtpipe.errors import ConfigError, TrtpipeError, expecting, raise_all

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS = "*.safetensors"
PICKLED_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.ckpt")
WHOLE_NUMBERS = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers",
    "head_dim", "vocab_size",
)  # fmt: skip
# All that core/chat.py reads of a folder.
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
)
IDENTITY_FILES = ("*.json", "*.jinja", "merges.txt", WEIGHTS)


def check(folder: Path) -> dict[str, Any]:
    """Return the parsed config.json of a usable folder. Raises ConfigError with all problems at once."""
    if not folder.is_dir():
        raise ConfigError(
            "the model folder does not exist",
            where=str(folder),
            fix="give a folder with config.json and *.safetensors",
        )
    problems: list[TrtpipeError] = []
    config: dict[str, Any] = {}
    try:
        config = config_of(folder)
    except ConfigError as problem:
        problems.append(problem)
    problems += _odd_values(config, folder / "config.json")
    architectures = config.get("architectures") or []
    if config and not any(
        str(name).endswith("ForCausalLM") for name in architectures if isinstance(architectures, list)
    ):
        named = ", ".join(map(str, architectures)) if isinstance(architectures, list) else f"{architectures!r}, no list"
        named = named or "none given"
        problems.append(
            ConfigError(
                f"not a causal language model: architectures: {named}",
                where=str(folder / "config.json"),
                fix="give a model whose architecture ends with ForCausalLM",
            )
        )
    if any(folder.glob(WEIGHTS)):
        problems += weight_files.faults(folder)
    else:
        problems.append(_no_weights(folder))
    if not (folder / "tokenizer.json").is_file():
        problems.append(
            ConfigError(
                "there is no tokenizer.json",
                where=str(folder),
                fix="save the tokenizer as a fast tokenizer beside the weights",
            )
        )
    raise_all(problems)
    return config


def _odd_values(config: dict[str, Any], path: Path) -> list[TrtpipeError]:
    """Return a problem for each key that everything later relies on and that has another type."""
    problems: list[TrtpipeError] = []
    if config and not isinstance(config.get("model_type"), str):
        problems.append(
            ConfigError("config.json names no `model_type`", where=str(path), fix="fetch the model's own config.json")
        )
    for key in WHOLE_NUMBERS:
        value = config.get(key, 1)
        if value is not None and not (type(value) is int and value > 0):
            problems.append(
                ConfigError(
                    f"`{key}` must be a whole number above 0, and is {value!r}",
                    where=str(path),
                    fix="fetch the model's own config.json",
                )
            )
    return problems


def config_of(folder: Path) -> dict[str, Any]:
    """Return the parsed config.json. Raises ConfigError where there is none that can be read."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(
            "there is no config.json", where=str(folder), fix="give a Hugging Face model folder"
        ) from None
    except (ValueError, RecursionError) as fault:  # of JSON, of UTF-8, of a number too long
        line = getattr(fault, "lineno", 1)
        raise ConfigError(f"not valid JSON: {fault}", where=f"{path}:{line}", fix="correct the file") from None
    except IsADirectoryError:
        raise ConfigError("config.json is a folder", where=str(path), fix="give a Hugging Face model folder") from None
    if not isinstance(config, dict):
        raise ConfigError("not a JSON object", where=str(path), fix="give a Hugging Face model folder")
    return config


def highest_token_id(tokenizer: Path) -> int:
    """Return the highest id of a tokenizer.json, its added tokens included."""
    with expecting(tokenizer, "fetch the model's own tokenizer.json"):
        found = json.loads(tokenizer.read_text("utf-8"))
        vocabulary = found["model"].get("vocab") or {}
        # Unigram models have a list of pieces, all others a mapping to ids
        ids = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
        added = (token["id"] for token in found.get("added_tokens") or ())
        highest: int = max([-1, *ids, *added])
    return highest


def _no_weights(folder: Path) -> ConfigError:
    pickled = sorted(path.name for pattern in PICKLED_WEIGHTS for path in folder.glob(pattern))
    if pickled:
        return ConfigError(
            f"the weights are pickle files ({', '.join(pickled[:3])}), never read since loading can run code",
            where=str(folder),
            fix="convert them to safetensors on a machine where you trust them",
        )
    return ConfigError("there are no *.safetensors files", where=str(folder), fix="fetch the weights")


def identity(folder: Path, cache: Path, *, keep: bool = True) -> str:
    """Return the SHA-256 over the folder's relevant files.

    A file's digest is taken from ``cache`` while its size, time of change and inode stay the same; with ``keep``
    new ones are added there.
    """
    known: dict[str, str] = {}
    with suppress(FileNotFoundError, ValueError, TypeError):  # a damaged cache is none
        known = dict(json.loads(cache.read_text("utf-8")))
    files = sorted({path for pattern in IDENTITY_FILES for path in folder.glob(pattern) if path.is_file()})
    digests, fresh = {}, {}
    for path in files:
        status = path.stat()
        stamp = f"{path}|{status.st_size}|{status.st_ctime_ns}|{status.st_ino}"
        fresh[stamp] = digests[path.name] = known.get(stamp) or digest.of_file(path)
    if keep:
        write_json(cache, fresh)
    return digest.of_value(digests)
