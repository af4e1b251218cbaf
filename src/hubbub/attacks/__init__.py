"""Attacks: what answers give away. They see only what was published, and run against any callable that answers."""

from hubbub.attacks.additive import AdditiveCounterexample
from hubbub.attacks.answering import exact, released, rounded, suppressed
from hubbub.attacks.cells import withheld_cells
from hubbub.attacks.coins import made_up_bits
from hubbub.attacks.curves import AttackCurve, attack_curve, guessing_accuracy, guessing_noise, predicted_accuracy
from hubbub.attacks.differencing import Difference, difference
from hubbub.attacks.membership import Membership, Tracer, pair_columns, predicted_power, trace
from hubbub.attacks.questions import AllSubsets, Questions, RandomSubsets, questions
from hubbub.attacks.reconstruction import Reconstruction, reconstruct
from hubbub.attacks.shadows import likelihood_ratio_attack
from hubbub.attacks.singling import SingledOut, single_out

__all__ = [
    "AdditiveCounterexample",
    "AllSubsets",
    "AttackCurve",
    "Difference",
    "Membership",
    "Questions",
    "RandomSubsets",
    "Reconstruction",
    "SingledOut",
    "Tracer",
    "attack_curve",
    "difference",
    "exact",
    "guessing_accuracy",
    "guessing_noise",
    "likelihood_ratio_attack",
    "made_up_bits",
    "pair_columns",
    "predicted_accuracy",
    "predicted_power",
    "questions",
    "reconstruct",
    "released",
    "rounded",
    "single_out",
    "suppressed",
    "trace",
    "withheld_cells",
]
