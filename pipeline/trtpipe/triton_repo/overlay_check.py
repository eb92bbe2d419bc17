"""What an overlay may not change of a model, because code or engine are made for what was generated."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as mc

from trtpipe.errors import ConfigError, TrtpipeError
from trtpipe.triton_repo import upstream
from trtpipe.triton_repo.config_check import scheduling
from trtpipe.triton_repo.source import Source

# What decides which code runs as the model, or whether it runs at all for a request: another would not be the one that
# was packaged and checked.
DECIDED_TEXTS = ("name", "platform", "backend", "runtime", "default_model_filename")
DECIDED_PARTS = ("version_policy", "cc_model_filenames", "response_cache")
AS_GENERATED = "as generated"

# Of these, Triton makes the instances of a group once for each GPU; KIND_AUTO is KIND_GPU where there is one.
PER_GPU = (mc.ModelInstanceGroup.KIND_GPU, mc.ModelInstanceGroup.KIND_AUTO)


def decided(overlay: Source) -> Iterator[TrtpipeError]:
    """Yield what the overlay says of fields that are not a site's to say, also where it says their default."""
    config = mc.ModelConfig(**dict.fromkeys(DECIDED_TEXTS, AS_GENERATED))
    text_format.Merge("\n".join(overlay.lines), config)
    texts = [name for name in DECIDED_TEXTS if getattr(config, name) != AS_GENERATED]
    given = {field.name for field, _ in config.ListFields()}
    for name in (*texts, *(name for name in DECIDED_PARTS if name in given)):
        yield ConfigError(f"an overlay can't change `{name}`", where=overlay.at(name), fix="take it out")


def check(overlay: Source, generated: mc.ModelConfig, merged: mc.ModelConfig, *, local: bool) -> Iterator[TrtpipeError]:
    """Yield what ``merged`` can't be. ``local``: the release is of the local engine, which has no GPU."""
    kind = scheduling(merged)
    if kind != scheduling(generated):
        usual = scheduling(generated)
        fix = (
            f"take it out: it takes the place of `{usual}`" if usual else "take it out: the model is made to be without"
        )
        yield ConfigError(f"an overlay can't give {generated.name} `{kind}`", where=overlay.at(str(kind)), fix=fix)
    if generated.backend == "python":
        yield from _python(overlay, generated, merged, local=local)


def _python(
    overlay: Source, generated: mc.ModelConfig, merged: mc.ModelConfig, *, local: bool
) -> Iterator[TrtpipeError]:
    if merged.max_batch_size != generated.max_batch_size:
        yield ConfigError(
            f"max_batch_size is {merged.max_batch_size}, and the model's code takes one prompt a request",
            where=overlay.at("max_batch_size"),
            fix=f"make it {generated.max_batch_size}, or take it out",
        )
    streams = generated.model_transaction_policy.decoupled
    if local and streams and not merged.model_transaction_policy.decoupled:
        yield ConfigError(
            "decoupled is false, and the model's code streams",
            where=overlay.at("decoupled", "model_transaction_policy"),
            fix="take it out",
        )
    groups, where = merged.instance_group, overlay.at("instance_group")
    if local and any(group.kind == mc.ModelInstanceGroup.KIND_GPU for group in groups):
        yield ConfigError("KIND_GPU, and the local engine's models run on the CPU", where=where, fix="make it KIND_CPU")
        return
    why = {
        "postprocessing": "the pieces of a stream would overtake each other",
        upstream.ENGINE.name: "each is an engine of its own",
    }.get(generated.name)
    if why is None:
        return
    # Triton reads a count that is not given, or 0, as 1.
    count = sum(max(group.count, 1) for group in groups)
    if count > 1:
        fix = "make it one, or take it out"
        yield ConfigError(f"{count} instances of {generated.name}: {why}", where=where, fix=fix)
    elif not local and groups[0].kind in PER_GPU and len(groups[0].gpus) != 1:
        fix = "add `kind: KIND_CPU`"
        yield ConfigError(f"an instance of {generated.name} for each GPU: {why}", where=where, fix=fix)
