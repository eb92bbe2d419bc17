"""From the choices of model and checkpoint to a judgement with its evidence."""

from __future__ import annotations

from trtpipe.quantization.sanity.judge import judge

MODEL = {"chosen": [[1, 2, 3, 4], [5, 6, 7, 8]], "loss": 2.0}


def spell(token: int) -> str:
    return f"t{token}"


def test_most_of_the_models_choices_are_enough() -> None:
    found = judge({"model": MODEL, "checkpoint": {"chosen": [[1, 2, 3, 9], [5, 6, 7, 9]], "loss": 2.2}}, 100, spell)
    assert (found.positions, found.agreement, found.fault) == (8, 0.75, None)
    assert found.figures() == {
        "sanity_positions": 8, "sanity_agreement": 0.75, "sanity_model_loss": 2.0, "sanity_checkpoint_loss": 2.2,
    }  # fmt: skip


def test_a_token_over_and_over_is_told_with_its_text() -> None:
    fault = judge({"model": MODEL, "checkpoint": {"chosen": [[1, 0, 0, 0], [0] * 4], "loss": 4.6}}, 100, spell).fault
    assert fault is not None
    assert fault.startswith("it chooses the model's token at 12% of the positions")
    assert "one token, 0 't0', is 88% of all that it chooses" in fault
    assert "its loss is that of a guess: 4.60 nats a token, ln(vocabulary) 4.61, the model's 2.00" in fault
    assert fault.endswith(
        "prompt 2 of 2 ends with 0 't0' 0 't0' 0 't0' 0 't0', the model's with 5 't5' 6 't6' 7 't7' 8 't8'"
    )


def test_text_without_sense_is_told_too() -> None:
    fault = judge(
        {"model": MODEL, "checkpoint": {"chosen": [[9, 8, 7, 6], [4, 3, 2, 1]], "loss": 3.0}}, 100, spell
    ).fault
    assert fault is not None
    assert "over and over" not in fault
    assert "guess" not in fault


def test_what_is_not_finite_has_no_choices() -> None:
    found = judge({"model": MODEL, "checkpoint": {"bad_layer": 3}}, 100, spell)
    assert found.fault == "the outputs of its layer 3 are not finite, and those of the model are"
    assert found.agreement is None
    own = judge({"model": {"bad_layer": 0}, "checkpoint": {"bad_layer": 0}}, 100, spell)
    assert own.fault is not None
    assert "model's own layer 0" in own.fault
