"""Where there is no C++ compiler, torch compiles to its own operations: the passes are still traced and cut apart."""

import shutil
from functools import partial

import pytest
import torch


@pytest.fixture(autouse=True)
def compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("g++") is None:
        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
