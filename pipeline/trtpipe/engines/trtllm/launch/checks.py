"""What must be so before an engine is started, told before anything is loaded: all refusals at once, then warnings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtpipe.core import ports as ports_of_machine
from trtpipe.engines.trtllm.built import lock_rules
from trtpipe.engines.trtllm.findings import Finding
from trtpipe.engines.trtllm.launch.machine import MIB, SHARED_MEMORY
from trtpipe.engines.trtllm.launch.ranks import Ranks
from trtpipe.errors import EnvironmentUnfit, TrtpipeError

if TYPE_CHECKING:
    from trtpipe.engines.trtllm.built.folder import EngineFolder
    from trtpipe.engines.trtllm.built.lock_rules import Host, Locked
    from trtpipe.engines.trtllm.launch.line import Ports
    from trtpipe.engines.trtllm.launch.machine import Machine

# As README.md of triton-inference-server/tensorrtllm_backend runs its container. NCCL's own guide asks for 1 GiB;
# Triton's Python models have the rest.
SHM_MIB = 2048
# What an idle GPU may keep for its driver without a word. Not measured: it is under 1 GiB on GPUs of 80 GB.
IDLE_MIB = 2048
ALL_INTERFACES = "0.0.0.0"  # noqa: S104 - where tritonserver listens; a container shows it to the host's loopback only


@dataclass(frozen=True)
class Outcome:
    """``refusals`` stand against a start; ``warnings`` tell of what may go wrong later."""

    refusals: list[TrtpipeError]
    warnings: list[Finding]


def check(
    engine: EngineFolder,
    lock: Locked,
    machine: Machine,
    ports: Ports,
    *,
    host: str = ALL_INTERFACES,
    software: bool = True,
) -> Outcome:
    """Hold a machine against an engine.

    ``host``: the address that is listened on. ``software``: whether programs and versions are looked at too.
    """
    ranks = Ranks.of(engine)
    where = str(engine.path)
    here = lock_rules.Host.of(machine.devices, tensorrt_llm=machine.tensorrt_llm, tensorrt=machine.tensorrt)
    refusals: list[TrtpipeError] = [
        *(lock_rules.version_faults(lock, here, where=where) if software else ()),
        *_gpus(lock, here, ranks, machine, where),
        *_memory(engine, machine),
        *(_programs(machine, lock) if software else ()),
        *ports_of_machine.faults(host, ports.by_purpose()),
    ]
    warnings = [
        *_driver(lock, here),
        *_held(ranks, machine),
        *_shared_memory(ranks, machine),
        *(_untold(machine) if software else ()),
    ]
    return Outcome(refusals, warnings)


def _gpus(lock: Locked, host: Host, ranks: Ranks, machine: Machine, where: str) -> Iterator[TrtpipeError]:
    if machine.driver_fault is not None:
        yield machine.driver_fault
        return
    yield from lock_rules.gpu_faults(lock, host, ranks=ranks.count, where=where)
    if machine.shown is not None and len(machine.devices) < ranks.count:
        yield EnvironmentUnfit(
            f"CUDA_VISIBLE_DEVICES={machine.shown} shows {len(machine.devices)} GPUs, and the engine has {ranks}",
            where="CUDA_VISIBLE_DEVICES",
            fix=f"unset it, or name {ranks.count} GPUs",
        )


def _memory(engine: EngineFolder, machine: Machine) -> Iterator[TrtpipeError]:
    """A rank's plan is read into its GPU whole; buffers and KV cache come on top."""
    for rank, (device, size) in enumerate(zip(machine.devices, engine.sizes.values(), strict=False)):
        if device.free_mib * MIB < size:
            holders = machine.holders.get(device.uuid)
            held = f": {'; '.join(holders)}" if holders else ""
            yield EnvironmentUnfit(
                f"GPU {device.index} has {device.free_mib:,} MiB free, and the engine of rank {rank} alone is "
                f"{-(-size // MIB):,} MiB{held}",
                where=f"nvidia-smi, GPU {device.index}",
                fix="end what holds the memory; another server of this engine is the usual cause",
            )


def _programs(machine: Machine, lock: Locked) -> Iterator[TrtpipeError]:
    for name in machine.missing:
        yield EnvironmentUnfit(
            f"{name} is not here", where="PATH", fix="start it in the image that launch/compose.yaml names"
        )
    if machine.backends is not None and lock.backend not in machine.backends:
        yield EnvironmentUnfit(
            f"the engine is for Triton's backend {lock.backend}, and this Triton has "
            f"{', '.join(machine.backends) or 'none'}",
            where="backends",
            fix="start it in the image that launch/compose.yaml names",
        )


def _driver(lock: Locked, host: Host) -> Iterator[Finding]:
    for said in lock_rules.notes(lock, host):
        yield Finding(
            "warning", said, "nvidia-smi", cost="without that package no rank starts",
            fix="start it in the image that launch/compose.yaml names, or install a newer driver",
        )  # fmt: skip


def _held(ranks: Ranks, machine: Machine) -> Iterator[Finding]:
    for device in machine.devices[: ranks.count]:
        held = device.memory_mib - device.free_mib
        if held > IDLE_MIB:
            yield Finding(
                "warning",
                f"{held:,} of {device.memory_mib:,} MiB of GPU {device.index} are held already",
                f"nvidia-smi, GPU {device.index}",
                why="; ".join(machine.holders.get(device.uuid, ())) or None,
                cost="the KV cache is a share of what is free: it will hold fewer tokens than planned, on every rank",
                fix="end what holds the memory before the engine starts",
            )


def _shared_memory(ranks: Ranks, machine: Machine) -> Iterator[Finding]:
    if machine.shm_free_mib < SHM_MIB:
        yield Finding(
            "warning",
            f"{SHARED_MEMORY} has {machine.shm_free_mib:,} MiB free, and {SHM_MIB:,} MiB are needed for {ranks}",
            str(SHARED_MEMORY),
            why="NCCL's ranks and Triton's Python models talk through it; a container has 64 MiB unless told otherwise",
            cost="a start that hangs, or an internal error of NCCL",
            fix=f"--shm-size={SHM_MIB}m; in a pod a volume of medium Memory there",
            source="TensorRT-LLM issue 9680; tensorrtllm_backend issue 103",
        )


def _untold(machine: Machine) -> Iterator[Finding]:
    untold = [name for name, version in (("TensorRT-LLM", machine.tensorrt_llm), ("TensorRT", machine.tensorrt))
              if version is None]  # fmt: skip
    if untold:
        yield Finding(
            "warning",
            f"the version of {' and of '.join(untold)} here was not compared with the lock",
            "installed packages",
            why="no package of that name is installed for Python",
            cost="an engine of another version ends with a serialization assertion, after minutes of loading",
        )
