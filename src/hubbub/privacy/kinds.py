"""The table of tags by which losses are read back from JSON."""

from __future__ import annotations

from typing import Any

from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.privacy.families import ZCDP, ApproxDP, BoundedRange, GaussianDP, LaplaceDP, NoLoss, PureDP, RenyiDP
from hubbub.privacy.loss import Composed, Loss
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
        Subsampled,
        SampledGaussian,
    )
}


def read(data: Any) -> Loss:
    """The loss that plain data stand for, by its tag."""
    if not isinstance(data, dict) or not isinstance(data.get("loss"), str):
        raise ParameterTypeError("loss", type(data).__name__, "must be an object with a tag under 'loss'")
    fields = {k: v for k, v in data.items() if k != "loss"}
    tag = data["loss"]
    try:
        if tag == Composed.tag:
            return Composed(tuple((read(part), n) for part, n in fields["parts"]))
        if tag == Subsampled.tag:
            return Subsampled(read(fields["base"]), fields["rate"], fields["scheme"])
        if tag == RenyiDP.tag:
            return RenyiDP(tuple(fields["orders"]), tuple(fields["epsilons"]), fields["neighbours"])
        if tag not in KINDS:
            raise ParameterError("loss", tag, f"must be one of {', '.join(sorted([*KINDS, Composed.tag]))}")
        return KINDS[tag](**fields)
    except (KeyError, TypeError, AttributeError) as wrong:
        raise ParameterTypeError("loss", tag, "has missing or unknown fields", "write it with to_json()") from wrong
