"""Finding Triton: what is missing is said before anything starts."""

import sys
from pathlib import Path

import pytest

from trtpipe.errors import EnvironmentUnfit
from trtpipe.triton_repo import installation


def test_no_environment_is_named(tmp_path):
    with pytest.raises(EnvironmentUnfit, match="no Python environment for Triton") as caught:
        installation.find(tmp_path / "absent")

    assert caught.value.where == str(tmp_path / "absent")
    pip = f"{tmp_path}/absent/bin/pip"
    assert caught.value.fix.startswith(
        f"make it: python{sys.version_info.major}.{sys.version_info.minor} -m venv {tmp_path}/absent "
        f"&& {pip} install --no-deps nvidia-pytriton==0.7.0 && {pip} install 'jinja2<4,>=3.1' 'numpy<2,>=1.26' "
    )
    assert "serving.triton_environment" in caught.value.fix


def test_an_environment_without_triton_is_named():

    with pytest.raises(EnvironmentUnfit, match="nvidia-pytriton is not installed"):
        installation.find(Path(sys.prefix))


def test_a_model_environment_of_another_python_is_refused(tmp_path):
    found = installation.Installation(tmp_path, tmp_path, tmp_path, "3.11")
    (tmp_path / "right" / "lib" / "python3.11").mkdir(parents=True)
    (tmp_path / "wrong" / "lib" / "python3.12").mkdir(parents=True)

    installation.require_same_python(found, tmp_path / "right")
    with pytest.raises(EnvironmentUnfit, match=r"no Python 3\.11"):
        installation.require_same_python(found, tmp_path / "wrong")


def test_the_models_see_tritons_environment_first(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    found = installation.Installation(tmp_path / "environment", tmp_path / "packages", tmp_path / "lib", "3.11")

    variables = found.variables()

    assert variables["PATH"] == f"{tmp_path}/environment/bin:/usr/bin"
    assert variables["LD_LIBRARY_PATH"] == f"{tmp_path}/packages/nvidia_pytriton.libs:{tmp_path}/lib"
