"""The tensors that both kinds of engine serve, as data: names, types and dims are those of ``upstream``.

A tensor without a row can't be asked for of the local engine: the models refuse unknown request parameters by name.

A copy of this module runs inside the BLS model, so that both ways through the models are wired by one table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Type = Literal["BOOL", "FP16", "FP32", "INT32", "INT64", "STRING", "UINT8", "UINT64"]


@dataclass(frozen=True)
class Tensor:
    """One input or output. ``dims`` are without the batch dimension; -1 is any length.

    ``flat``: the model gets the batch dimension alone, without the trailing 1.
    ``ragged``: requests of one batch may differ in length.
    """

    name: str
    type: Type
    dims: tuple[int, ...]
    optional: bool = False
    flat: bool = False
    ragged: bool = False


@dataclass(frozen=True)
class Model:
    """The tensors of one model. ``decoupled``: a request may get any number of responses."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    decoupled: bool = False


@dataclass(frozen=True)
class Step:
    """One model of the ensemble; both maps go from the model's tensor to the ensemble's."""

    model: str
    inputs: dict[str, str]
    outputs: dict[str, str]


def _option(name: str, type_: Type) -> Tensor:
    """Return an optional scalar of the engine."""
    return Tensor(name, type_, (1,), optional=True, flat=True)


def _parameter(name: str, type_: Type) -> Tensor:
    """Return an optional scalar of the ensemble."""
    return Tensor(name, type_, (1,), optional=True)


# Only where asked for: the prompt's tokens, and those that are new in each response, their sum being the answer's.
COUNTS = (Tensor("num_input_tokens", "INT32", (1,)), Tensor("num_output_tokens", "INT32", (1,)))
# Only where asked for: of the tokens that are new in each response, by beams, and their sum so far.
LOG_PROBS = (Tensor("output_log_probs", "FP32", (-1, -1)), Tensor("cum_log_probs", "FP32", (-1,)))
# With them, from models in Python only: the tokens that they are of. Those of a text may wait for the end of their
# character or be spelled anew, and upstream's ensemble has no ids at all.
LOG_PROB_IDS = Tensor("log_prob_ids", "INT32", (-1, -1))


PREPROCESSING = Model(
    "preprocessing",
    inputs=(
        Tensor("QUERY", "STRING", (1,)),
        Tensor("REQUEST_OUTPUT_LEN", "INT32", (1,)),
        Tensor("BAD_WORDS_DICT", "STRING", (-1,), optional=True),
        Tensor("STOP_WORDS_DICT", "STRING", (-1,), optional=True),
        Tensor("END_ID", "INT32", (1,), optional=True),
        Tensor("PAD_ID", "INT32", (1,), optional=True),
        # Not upstream's. TensorRT-LLM's engine would answer one that is not served with an assertion (500).
        Tensor("BEAM_WIDTH", "INT32", (1,), optional=True),
    ),
    outputs=(
        Tensor("INPUT_ID", "INT32", (-1,)),
        Tensor("REQUEST_INPUT_LEN", "INT32", (1,)),
        Tensor("BAD_WORDS_IDS", "INT32", (2, -1)),
        Tensor("STOP_WORDS_IDS", "INT32", (2, -1)),
        Tensor("REQUEST_OUTPUT_LEN", "INT32", (-1,)),
        Tensor("OUT_END_ID", "INT32", (1,)),
        Tensor("OUT_PAD_ID", "INT32", (1,)),
    ),
)

ENGINE = Model(
    "tensorrt_llm",
    inputs=(
        Tensor("input_ids", "INT32", (-1,), optional=True, ragged=True),
        Tensor("input_lengths", "INT32", (1,), flat=True),
        Tensor("request_output_len", "INT32", (1,), flat=True),
        _option("end_id", "INT32"),
        _option("pad_id", "INT32"),
        Tensor("stop_words_list", "INT32", (2, -1), optional=True, ragged=True),
        Tensor("bad_words_list", "INT32", (2, -1), optional=True, ragged=True),
        _option("beam_width", "INT32"),
        _option("temperature", "FP32"),
        _option("runtime_top_k", "INT32"),
        _option("runtime_top_p", "FP32"),
        _option("repetition_penalty", "FP32"),
        _option("presence_penalty", "FP32"),
        _option("frequency_penalty", "FP32"),
        _option("min_tokens", "INT32"),
        _option("seed", "UINT64"),
        _option("streaming", "BOOL"),
        _option("return_log_probs", "BOOL"),
        _option("return_num_input_tokens", "BOOL"),
        _option("return_num_output_tokens", "BOOL"),
        # Ends the request that has the same id, instead of beginning one.
        _option("stop", "BOOL"),
    ),
    outputs=(
        Tensor("output_ids", "INT32", (-1, -1)),
        Tensor("sequence_length", "INT32", (-1,)),
        *LOG_PROBS,
        *COUNTS,
    ),
    decoupled=True,
)

POSTPROCESSING = Model(
    "postprocessing",
    inputs=(
        Tensor("TOKENS_BATCH", "INT32", (-1, -1)),
        Tensor("SEQUENCE_LENGTH", "INT32", (-1,)),
    ),
    outputs=(Tensor("OUTPUT", "STRING", (-1,)),),
)

ENSEMBLE = Model(
    "ensemble",
    inputs=(
        Tensor("text_input", "STRING", (1,)),
        Tensor("max_tokens", "INT32", (1,)),
        Tensor("bad_words", "STRING", (-1,), optional=True),
        Tensor("stop_words", "STRING", (-1,), optional=True),
        _parameter("end_id", "INT32"),
        _parameter("pad_id", "INT32"),
        _parameter("beam_width", "INT32"),
        _parameter("temperature", "FP32"),
        _parameter("top_k", "INT32"),
        _parameter("top_p", "FP32"),
        _parameter("repetition_penalty", "FP32"),
        _parameter("presence_penalty", "FP32"),
        _parameter("frequency_penalty", "FP32"),
        _parameter("min_tokens", "INT32"),
        _parameter("seed", "UINT64"),
        _parameter("stream", "BOOL"),
        _parameter("return_log_probs", "BOOL"),
        _parameter("return_num_input_tokens", "BOOL"),
        _parameter("return_num_output_tokens", "BOOL"),
    ),
    outputs=(Tensor("text_output", "STRING", (-1,)), *LOG_PROBS, *COUNTS),
)

# The same by Business Logic Scripting: a Python model makes the steps' calls. Upstream has these without their 1.
BLS = replace(
    ENSEMBLE,
    name="tensorrt_llm_bls",
    inputs=tuple(replace(row, flat=row.name.startswith("return_")) for row in ENSEMBLE.inputs),
    outputs=(*ENSEMBLE.outputs, LOG_PROB_IDS),
    decoupled=True,
)

STEPS = (
    Step(
        "preprocessing",
        inputs={
            "QUERY": "text_input",
            "REQUEST_OUTPUT_LEN": "max_tokens",
            "BAD_WORDS_DICT": "bad_words",
            "STOP_WORDS_DICT": "stop_words",
            "END_ID": "end_id",
            "PAD_ID": "pad_id",
            "BEAM_WIDTH": "beam_width",
        },
        outputs={
            "INPUT_ID": "_INPUT_ID",
            "REQUEST_INPUT_LEN": "_REQUEST_INPUT_LEN",
            "BAD_WORDS_IDS": "_BAD_WORDS_IDS",
            "STOP_WORDS_IDS": "_STOP_WORDS_IDS",
            "REQUEST_OUTPUT_LEN": "_REQUEST_OUTPUT_LEN",
            "OUT_END_ID": "_PREPROCESSOR_END_ID",
            "OUT_PAD_ID": "_PREPROCESSOR_PAD_ID",
        },
    ),
    Step(
        "tensorrt_llm",
        inputs={
            "input_ids": "_INPUT_ID",
            "input_lengths": "_REQUEST_INPUT_LEN",
            "request_output_len": "_REQUEST_OUTPUT_LEN",
            "end_id": "_PREPROCESSOR_END_ID",
            "pad_id": "_PREPROCESSOR_PAD_ID",
            "stop_words_list": "_STOP_WORDS_IDS",
            "bad_words_list": "_BAD_WORDS_IDS",
            "beam_width": "beam_width",
            "temperature": "temperature",
            "runtime_top_k": "top_k",
            "runtime_top_p": "top_p",
            "repetition_penalty": "repetition_penalty",
            "presence_penalty": "presence_penalty",
            "frequency_penalty": "frequency_penalty",
            "min_tokens": "min_tokens",
            "seed": "seed",
            "streaming": "stream",
            "return_log_probs": "return_log_probs",
            "return_num_input_tokens": "return_num_input_tokens",
            "return_num_output_tokens": "return_num_output_tokens",
        },
        outputs={
            "output_ids": "_TOKENS_BATCH",
            "sequence_length": "_SEQUENCE_LENGTH",
            **{tensor.name: tensor.name for tensor in (*LOG_PROBS, *COUNTS)},
        },
    ),
    Step(
        "postprocessing",
        inputs={"TOKENS_BATCH": "_TOKENS_BATCH", "SEQUENCE_LENGTH": "_SEQUENCE_LENGTH"},
        outputs={"OUTPUT": "text_output"},
    ),
)

# What the local engine takes more: what an answer must look like. TensorRT-LLM's engine has it as two texts, which
# vLLM's environment can't get from Triton; so preprocessing hands them over as the numbers of their bytes. And what it
# tells more: the ids of the log probabilities.
GUIDES = {"GUIDE_TYPE": "guided_decoding_guide_type", "GUIDE": "guided_decoding_guide"}
GUIDED_PREPROCESSING = replace(
    PREPROCESSING,
    inputs=(*PREPROCESSING.inputs, *(Tensor(name, "STRING", (1,), optional=True) for name in GUIDES)),
    outputs=(*PREPROCESSING.outputs, Tensor("GUIDE_BYTES", "INT32", (-1,))),
)
GUIDED_ENGINE = replace(
    ENGINE,
    inputs=(*ENGINE.inputs, Tensor("guide_bytes", "INT32", (-1,), optional=True, ragged=True)),
    outputs=(*ENGINE.outputs, LOG_PROB_IDS),
)
GUIDED_ENSEMBLE = replace(
    ENSEMBLE,
    inputs=(
        *ENSEMBLE.inputs,
        *(Tensor(name, "STRING", (1,), optional=True, ragged=True) for name in GUIDES.values()),
    ),
    outputs=(*ENSEMBLE.outputs, LOG_PROB_IDS),
)
GUIDED_BLS = replace(BLS, inputs=(*BLS.inputs, *(_parameter(name, "STRING") for name in GUIDES.values())))
GUIDED_STEPS = (
    replace(STEPS[0], inputs=STEPS[0].inputs | GUIDES, outputs=STEPS[0].outputs | {"GUIDE_BYTES": "_GUIDE_BYTES"}),
    replace(
        STEPS[1],
        inputs=STEPS[1].inputs | {"guide_bytes": "_GUIDE_BYTES"},
        outputs=STEPS[1].outputs | {LOG_PROB_IDS.name: LOG_PROB_IDS.name},
    ),
    STEPS[2],
)
