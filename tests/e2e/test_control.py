"""The real Triton, asked without the key for what only its own tooling may do."""

from __future__ import annotations

from pathlib import Path

import grpc
import httpx
import pytest
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from trtpipe.core.store import Store
from trtpipe.triton_repo import control
from trtpipe.triton_repo import server as triton
from trtpipe.triton_repo.server import Server

pytestmark = pytest.mark.e2e

LOAD = "v2/repository/models/ensemble/load"
UNLOAD = "v2/repository/models/ensemble/unload"


@pytest.mark.parametrize("key", [None, "a wrong key"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", LOAD),
        ("POST", UNLOAD),
        ("POST", "v2/repository/index"),
        ("GET", "v2/systemsharedmemory/status"),
        ("GET", "v2/logging"),
        ("GET", "v2/trace/setting"),
    ],
)
def test_control_is_refused_over_http(server: str, method: str, path: str, key: str | None) -> None:
    headers = {control.HEADER: key} if key else {}
    answer = httpx.request(method, f"{server}/{path}", headers=headers, timeout=30, trust_env=False)

    assert answer.status_code == 403
    assert "restricted" in answer.text
    assert triton.is_ready(server)


@pytest.mark.parametrize("key", [None, "a wrong key"])
def test_control_is_refused_over_grpc(running: Server, server: str, key: str | None) -> None:
    asked = {
        "RepositoryModelLoad": messages.RepositoryModelLoadRequest(model_name="ensemble"),
        "RepositoryModelUnload": messages.RepositoryModelUnloadRequest(model_name="ensemble"),
        "RepositoryIndex": messages.RepositoryIndexRequest(),
        "SystemSharedMemoryStatus": messages.SystemSharedMemoryStatusRequest(),
        "TraceSetting": messages.TraceSettingRequest(),
        "LogSettings": messages.LogSettingsRequest(),
    }
    metadata = [(control.GRPC_HEADER, key)] if key else []
    with grpc.insecure_channel(f"{running.addresses.host}:{running.addresses.grpc_port}") as channel:
        stub = GRPCInferenceServiceStub(channel)
        for name, request in asked.items():
            with pytest.raises(grpc.RpcError, match="restricted"):
                getattr(stub, name)(request, metadata=metadata, timeout=30)
        assert stub.ModelReady(messages.ModelReadyRequest(name="ensemble"), timeout=30).ready


def test_the_key_opens_it_and_is_in_no_log(running: Server, server: str, workspace: Path) -> None:
    key = control.key_of(triton.working_folder(Store(workspace).state, running.addresses))
    answer = httpx.post(
        f"{server}/v2/repository/index", json={}, headers={control.HEADER: key}, timeout=30, trust_env=False
    )

    assert {row["name"] for row in answer.json()} >= {"ensemble", "tensorrt_llm"}
    assert key not in running.log.read_text(errors="replace")
