"""Federated learning on Flower: strategies and client mods that clip, add noise and pay by one plan."""

from __future__ import annotations

from hubbub.errors import MissingExtra

try:
    import flwr  # noqa: F401
except ImportError as missing:  # pragma: no cover
    raise MissingExtra("federated") from missing

from hubbub.learning.federated.auditing import WhiteBox
from hubbub.learning.federated.central import Central, Compressing
from hubbub.learning.federated.compression import Mask, Signs, Top
from hubbub.learning.federated.distributed import Distributed, Sharing
from hubbub.learning.federated.local import Local, LocalNoise
from hubbub.learning.federated.plan import CentralPlan, DistributedPlan, LocalPlan

__all__ = [
    "Central",
    "CentralPlan",
    "Compressing",
    "Distributed",
    "DistributedPlan",
    "Local",
    "LocalNoise",
    "LocalPlan",
    "Mask",
    "Sharing",
    "Signs",
    "Top",
    "WhiteBox",
]
