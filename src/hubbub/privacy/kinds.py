"""The table of tags by which losses are read back from JSON."""

from __future__ import annotations

from typing import Any

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.privacy.discrete import DiscreteGaussianDP
from hubbub.privacy.families import ZCDP, ApproxDP, GaussianDP, LaplaceDP, NoLoss, PureDP, RenyiDP
from hubbub.privacy.finite import RandomizedResponseDP, TruncatedLaplaceDP
from hubbub.privacy.loss import Composed, Loss
from hubbub.privacy.ranges import BoundedRange
from hubbub.privacy.sampling import SampledGaussian, Subsampled

KINDS: dict[str, type[Loss]] = {
    kind.tag: kind
    for kind in (
        NoLoss,
        PureDP,
        ApproxDP,
        GaussianDP,
        LaplaceDP,
        ZCDP,
        RenyiDP,
        BoundedRange,
        RandomizedResponseDP,
        TruncatedLaplaceDP,
        DiscreteGaussianDP,
        Subsampled,
        SampledGaussian,
    )
}


def read(data: Any) -> Loss:
    """The loss that plain data stand for, by its tag. Every field must be there, and none that is not known."""
    if not isinstance(data, dict) or not isinstance(data.get("loss"), str):
        raise ParameterTypeError("loss", type(data).__name__, "must be an object with a tag under 'loss'")
    tag = data["loss"]
    if tag not in KINDS and tag != Composed.tag:
        raise ParameterError("loss", tag, f"must be one of {', '.join(sorted([*KINDS, Composed.tag]))}")
    try:
        loss = _make(tag, {k: v for k, v in data.items() if k != "loss"})
    except (KeyError, TypeError, AttributeError, RecursionError) as wrong:
        raise ParameterTypeError("loss", tag, "has missing or unknown fields", "write it with to_json()") from wrong
    if set(data) != set(loss.to_dict()) or data["neighbours"] != loss.neighbours:
        raise ParameterTypeError("loss", tag, "has fields or a relation that do not fit", "write it with to_json()")
    return loss


def _make(tag: str, fields: dict[str, Any]) -> Loss:
    if tag == Composed.tag:
        parts = fields["parts"]
        if not isinstance(parts, list) or any(not isinstance(p, list) or len(p) != 2 for p in parts):
            raise TypeError
        return Composed(tuple((read(part), n) for part, n in parts))
    if tag == Subsampled.tag:
        return Subsampled(read(fields["base"]), fields["rate"], fields["scheme"])
    if tag == RenyiDP.tag:
        return RenyiDP(tuple(fields["orders"]), tuple(fields["epsilons"]), fields["neighbours"])
    return KINDS[tag](**fields)
