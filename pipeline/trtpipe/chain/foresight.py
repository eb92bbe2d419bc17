"""What a run would do: which stages it would reuse or build, and why, as far as that shows without building."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from trtpipe.chain.chain import STAGE_NAMES, Chain
from trtpipe.core.progress import Silent
from trtpipe.core.runner import Runner, Stage
from trtpipe.core.store import Store

if TYPE_CHECKING:
    from trtpipe.config.load import Workspace
    from trtpipe.core.artifacts import Artifact


@dataclass(frozen=True)
class Foreseen:
    """What would become of one stage. ``depends``: on a stage that would be built, so that its own key is unknown."""

    stage: str
    decision: Literal["reuse", "build", "depends"]
    reason: str

    def document(self) -> dict[str, Any]:
        return asdict(self)


class NotMade(Exception):  # noqa: N818 - a finding, not an error
    """The artifact would have to be made first."""

    def __init__(self, stage: str) -> None:
        super().__init__(stage)
        self.stage = stage


class Foresight(Runner):
    """A runner that makes nothing: what is there is found, what is not raises NotMade."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, Silent())
        self.foreseen: dict[str, Foreseen] = {}

    def obtain(self, stage: Stage) -> Artifact:
        found, reason = self.foresee(stage)
        self.foreseen[stage.name] = Foreseen(stage.name, "reuse" if found else "build", reason)
        if found is None:
            raise NotMade(stage.name)
        return found


def foresee(space: Workspace, artifact: str) -> list[Foreseen]:
    """Return every stage up to the chain's property ``artifact``. Raises what the chain's own checks raise."""
    runner = Foresight(Store(space.root))
    chain = Chain(space, runner, keep_digests=False)
    names = list(STAGE_NAMES)
    for name in names[: names.index(artifact) + 1]:
        stage = STAGE_NAMES[name]
        try:
            getattr(chain, name)
        except NotMade as missing:
            if missing.stage != stage:
                runner.foreseen[stage] = Foreseen(stage, "depends", f"on what {missing.stage} gives")
    return [runner.foreseen[stage] for stage in STAGE_NAMES.values() if stage in runner.foreseen]
