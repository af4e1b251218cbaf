"""PATE: a student learns from the noisy votes of teachers that saw disjoint people."""

from __future__ import annotations

from hubbub.learning.pate.accounting import ForOwner
from hubbub.learning.pate.aggregators import Aggregator, Confident, GaussianMax, Interactive, LaplaceMax
from hubbub.learning.pate.pate import PATE
from hubbub.learning.pate.queries import doubtful, most_answers, spread
from hubbub.learning.pate.smooth import ReleasedEpsilon, released_epsilon
from hubbub.learning.pate.votes import Votes

__all__ = [
    "PATE",
    "Aggregator",
    "Confident",
    "ForOwner",
    "GaussianMax",
    "Interactive",
    "LaplaceMax",
    "ReleasedEpsilon",
    "Votes",
    "doubtful",
    "most_answers",
    "released_epsilon",
    "spread",
]
