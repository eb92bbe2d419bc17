"""Before the hours of a build: does the TensorRT-LLM checkpoint choose the tokens that its model chooses?"""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

from trtpipe.chain.acceptance.measures import QUESTIONS
from trtpipe.core import golden_ids
from trtpipe.core.chat import ChatError, ChatTokenizer
from trtpipe.core.model_folder import WEIGHTS
from trtpipe.core.process import run_worker
from trtpipe.errors import ConfigError, ToolFailed
from trtpipe.quantization.exports.trtllm_layout import MODELS
from trtpipe.quantization.sanity.judge import judge

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.chain.plan import Planned
    from trtpipe.core.runner import Making

WORKER = "trtpipe.quantization.sanity.worker"
PROMPT_IDS_MAX = 256
TRANSFORMERS_MAJOR_MIN = 5


def check(planned: Planned, checkpoint: Path, making: Making) -> None:
    """Raise ToolFailed where a checkpoint is garbled; note what was found, or why nothing was tried."""
    tokenizer = _tokenizer(planned.model)
    why = _untried(planned)
    if why is not None or tokenizer is None:
        making.note(f"not tried whether the checkpoint says what its model says: {why or 'it has no tokenizer'}")
        return
    result = run_worker(
        WORKER,
        {"model": str(planned.model), "checkpoint": str(checkpoint), "prompts": _prompts(checkpoint, tokenizer)},
        log=making.log,
        reporter=making.reporter,
        time_limit_s=planned.plan.target.build_time_limit_s,
        environment={"OMP_WAIT_POLICY": "passive"},
    )
    found = judge(result, planned.plan.division.shape.vocabulary, tokenizer.tokenizer.id_to_token)
    making.figures |= found.figures()
    if found.fault is not None:
        raise ToolFailed(
            f"the checkpoint does not say what its model says: {found.fault}",
            where=str(checkpoint),
            fix="convert it again from whole files, and with the model's own config.json: wrong scales, their order or "
            "their group size do this. `sanity: false` in the target builds it as it is",
        )
    making.note(
        f"the checkpoint chooses the model's token at {found.agreement:.0%} of {found.positions} positions; loss "
        f"{found.checkpoint_loss:.2f} nats a token, the model's {found.model_loss:.2f}"
    )


def _untried(planned: Planned) -> str | None:
    """Say what keeps the check from running; None where nothing does."""
    target, shape = planned.plan.target, planned.plan.division.shape
    if not target.sanity:
        return "`sanity: false` in the target"
    if target.weights != "w4a16_awq" or shape.model_type not in {model.model_type for model in MODELS}:
        return f"the layout of {target.weights} checkpoints of {shape.model_type} is not read here"
    if not any(planned.model.glob(WEIGHTS)):
        return "the model's folder has no weights"
    try:
        importlib.metadata.version("torch")
        version = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError as missing:
        return f"it takes the packages of the `vllm` extra, and {missing.name} is not installed"
    if int(version.partition(".")[0]) < TRANSFORMERS_MAJOR_MIN:
        return f"it takes transformers {TRANSFORMERS_MAJOR_MIN}, and {version} is installed"
    return None


def _tokenizer(model: Path) -> ChatTokenizer | None:
    try:
        return ChatTokenizer.load(model)
    except ChatError:
        return None


def _prompts(checkpoint: Path, tokenizer: ChatTokenizer) -> list[list[int]]:
    """Return the golden prompts' ids where the checkpoint has some, else those of a few questions.

    Raises ConfigError where the golden prompts are damaged.
    """
    path = checkpoint / golden_ids.FILE
    if path.is_file():
        try:
            return [prompt.ids[:PROMPT_IDS_MAX] for prompt in golden_ids.Golden.read(path).prompts]
        except golden_ids.GoldenError as fault:
            raise ConfigError(str(fault), where=str(path), fix="copy it from the calibrated checkpoint") from None
    if tokenizer.has_template:
        return [tokenizer.encode_chat([{"role": "user", "content": question}]) for question in QUESTIONS]
    return [tokenizer.encode_plain(question) for question in QUESTIONS]
