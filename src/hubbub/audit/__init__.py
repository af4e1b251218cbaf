"""Audits: doubting a privacy claim, from outside, with the noise frozen, or from a single run."""

from hubbub.audit.blackbox import audit
from hubbub.audit.canaries import one_run
from hubbub.audit.replay import Replay, replay
from hubbub.audit.report import Report
from hubbub.audit.search import worst_pair

__all__ = ["Replay", "Report", "audit", "one_run", "replay", "worst_pair"]
