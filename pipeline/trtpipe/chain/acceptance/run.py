"""An acceptance from build to verdict, and the document of it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from trtpipe.chain import released, servable, trtllm_engine, trtllm_release
from trtpipe.chain.acceptance import drift, measures
from trtpipe.chain.acceptance.drift import Drift
from trtpipe.chain.acceptance.steps import CheckFailed, Steps
from trtpipe.core import environment
from trtpipe.core.chat import ChatTokenizer
from trtpipe.core.store import command_line, now, write_json
from trtpipe.engines.trtllm.built import lock
from trtpipe.errors import ConfigError
from trtpipe.triton_repo import running_facts

if TYPE_CHECKING:
    from pathlib import Path

    from trtpipe.chain.acceptance.measures import LoadSettings
    from trtpipe.chain.trtllm_engine import Foretold
    from trtpipe.config.load import Workspace
    from trtpipe.core.artifacts import Artifact
    from trtpipe.core.runner import Runner
    from trtpipe.engines.trtllm.build.gpu_query import Device
    from trtpipe.triton_repo.overlays import Overlays
    from trtpipe.triton_repo.server import Addresses, Server


@dataclass(frozen=True)
class Site:
    """Where and of what an acceptance is made. ``out``: the file that it leaves; ``overlays``: of Triton's configs.

    ``baseline``: the folder of the unquantized model; ``no_drift``: why it can't be one, None where it can.
    """

    space: Workspace
    runner: Runner
    foretold: Foretold
    checkpoint: Path
    addresses: Addresses
    devices: list[Device]
    overlays: Overlays
    out: Path
    baseline: Path
    no_drift: str | None


class Acceptance:
    """``steps``: what came of each."""

    def __init__(self, site: Site, settings: LoadSettings) -> None:
        self.site = site
        self.settings = settings
        self.steps = Steps(lambda name: site.runner.reporter.stage(f"accept: {name}", "begins"))
        self._drift = Drift(site.space, site.runner, site.foretold.planned, site.baseline)
        self._engine: dict[str, Any] = {}
        self._server: dict[str, Any] = {}

    def run(self) -> None:
        """Run every step that can be run; the file is written whatever becomes of them.

        It is also written first: a place that takes no file is found out now, and not after hours.
        """
        write_json(self.site.out, self.document())
        try:
            self._run()
        finally:
            write_json(self.site.out, self.document())

    def _run(self) -> None:
        no_drift = self.site.no_drift
        made: list[Artifact] = []
        if no_drift is not None:
            why = f"{no_drift}; without a verdict `promote` refuses the release"
            self.site.runner.reporter.note(f"drift is not measured: {why}")
            for name in drift.STEPS:
                self.steps.leave_out(name, why)
        if not (
            (no_drift is not None or self.steps.run("prompts", self._drift.prompts))
            and self.steps.run("build", lambda: self._build(made))
            and self.steps.run("inspect", lambda: _inspected(made[0]))
            and self.steps.run("package", lambda: self._package(made))
        ):
            return
        answered = False
        with ExitStack() as stack:
            served: list[Server] = []
            if self.steps.run("launch", lambda: self._launch(made[1], stack, served)):
                self._measure(made[1])
                if no_drift is None:
                    answered = self.steps.run("answers", lambda: self._drift.answers(served[0], made[1]))
        if answered:  # the server has ended: the GPUs are free
            self.steps.run("drift", lambda: self._drift.verdict(made[1]))

    def _build(self, made: list[Artifact]) -> dict[str, Any]:
        site = self.site
        engine = trtllm_engine.build(site.runner, site.foretold, site.checkpoint)
        made.append(engine)
        kept = lock.read(engine.path)
        self._engine = {**kept.model_dump(), "builder_reported": engine.record.figures.get("builder_reported")}
        return _made(engine, reused=site.runner.outcomes[-1].reused)

    def _package(self, made: list[Artifact]) -> dict[str, Any]:
        site = self.site
        date, ports = site.space.config.prompts.template_date, released.ports_of(site.space)
        planned = site.foretold.planned
        release = trtllm_release.package(
            site.runner, made[0].path, planned.model, date, ports, planned.plan.target, site.overlays
        )
        made.append(release)
        return _made(release, reused=site.runner.outcomes[-1].reused)

    def _launch(self, release: Artifact, stack: ExitStack, served: list[Server]) -> dict[str, Any]:
        site, state = self.site, self.site.runner.store.state
        log, warnings = state / "logs" / "accept.log", list[str]()
        servable.require(release, warnings.append)
        serving: Server = stack.enter_context(
            released.running(site.space, release, site.addresses, state=state, log=log, note=warnings.append)
        )
        served.append(serving)
        self._server = running_facts.about(site.addresses.http_url)
        return {"seconds_to_ready": round(serving.seconds_to_ready, 2), "log": str(log), "warnings": warnings}

    def _measure(self, release: Artifact) -> None:
        site, steps, url = self.site, self.steps, self.site.addresses.http_url
        date = site.space.config.prompts.template_date
        tokenizer = ChatTokenizer.load(released.read(release).tokenizer, date=date)
        plan, reporter = site.foretold.planned.plan, site.runner.reporter
        steps.run("kv-blocks", lambda: measures.kv_blocks(plan, site.addresses))
        steps.run("golden-ids", lambda: measures.golden_ids(tokenizer, url, kv_reuse=plan.target.kv_reuse))
        requests = self.settings.requests
        steps.run(
            "load",
            lambda: measures.load(
                tokenizer, self.settings, url, lambda done: reporter.progress("load", done, requests)
            ),
        )

    def document(self) -> dict[str, Any]:
        planned = self.site.foretold.planned
        return {
            "schema_version": 1,
            "ok": self.steps.whole,
            "created": now(),
            "command": command_line(),
            "machine": environment.describe() | {"gpus": [asdict(device) for device in self.site.devices]},
            "engine": self._engine,
            "server": self._server,
            "plan": planned.document(),
            "arguments": self.site.foretold.arguments,
            "steps": {name: step.document() for name, step in self.steps.all().items()},
        }


def _made(artifact: Artifact, *, reused: bool) -> dict[str, Any]:
    record = artifact.record
    return {
        "reused": reused,
        "path": str(artifact.path),
        "digest": artifact.digest,
        "seconds_when_made": record.seconds,
        "figures": record.figures,
        "notes": record.notes,
    }


def _inspected(engine: Artifact) -> dict[str, Any]:
    found = trtllm_engine.inspect(engine.path, None, ())
    if found.refusals:
        raise CheckFailed(
            found.document(),
            [ConfigError(finding.what, where=finding.where, fix=finding.fix) for finding in found.refusals],
        )
    return found.document()
