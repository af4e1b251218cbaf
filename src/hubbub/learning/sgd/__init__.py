"""DP-SGD on PyTorch: any model, trained privately; batches, clipping, noise and price come from one plan."""

from __future__ import annotations

from hubbub.errors import MissingExtra

try:
    import torch  # noqa: F401
except ImportError as missing:  # pragma: no cover
    raise MissingExtra("torch") from missing

from hubbub.learning.sgd.auditing import WhiteBox
from hubbub.learning.sgd.batches import Batch
from hubbub.learning.sgd.clipping import Losses
from hubbub.learning.sgd.layers import suited
from hubbub.learning.sgd.plan import Plan
from hubbub.learning.sgd.run import Run
from hubbub.learning.sgd.trainer import Trainer

__all__ = ["Batch", "Losses", "Plan", "Run", "Trainer", "WhiteBox", "suited"]
