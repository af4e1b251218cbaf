"""What an audit found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True)
class Report:
    """The result of an audit: what was claimed, and what the outputs prove at least.

    ``holds`` is False only where the claim is refuted; an audit that holds proves nothing, its ``power`` says how much
    of the claim it could see.
    """

    mechanism: str
    claimed: float
    """The claimed epsilon at ``delta``."""
    delta: float
    epsilon_lower: float
    """At the stated confidence, epsilon is at least this."""
    confidence: float
    samples: int
    """Releases used, over both inputs and all stages."""
    event: str
    """The event or guess that shows it, in words."""
    counts: tuple[int, int, int, int]
    """Outputs of the first input in the event, and in all; and of its neighbour."""
    claimed_mu: float | None = None
    mu_lower: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the claim survived."""
        refuted = self.claimed_mu is not None and self.mu_lower is not None and self.mu_lower > self.claimed_mu
        return self.epsilon_lower <= self.claimed and not refuted

    @property
    def power(self) -> float:
        """The share of the claim that the audit could see: near 1 means that no noise is wasted."""
        if self.claimed_mu is not None and self.mu_lower is not None:
            return self.mu_lower / self.claimed_mu
        return self.epsilon_lower / self.claimed if self.claimed else float(self.epsilon_lower > 0)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {**asdict(self), "holds": self.holds, "power": self.power}

    def plot(self) -> altair.LayerChart:
        """The claim beside what was measured."""
        from hubbub.plots import audit_report

        return audit_report(self.to_dict())

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "is REFUTED"
        text = f"{self.mechanism}: claimed epsilon {self.claimed:.4g}" + (
            f" at delta {self.delta:g}" if self.delta else ""
        )
        text += f" {verdict}; measured at least {self.epsilon_lower:.4g}"
        if self.mu_lower is not None:
            text += f" (mu {self.mu_lower:.4g} of {self.claimed_mu:.4g})"
        return f"{text} by {self.event}, {self.samples} releases, confidence 1 - {1 - self.confidence:.0e}"
