"""The budget over time: it ends where the ledger stands, and is the same followed bit by bit or all at once."""

from pathlib import Path

import pytest
from curator.village import configured

import hubbub as hb
from hubbub.curator.config import read
from hubbub.curator.ledger import Ledger
from hubbub.curator.web.trails import STEPS, Trails

LOSSES = [hb.PureDP(0.1), hb.GaussianDP(0.05), hb.ApproxDP(0.2, 1e-7), hb.PureDP(0.3), hb.GaussianDP(0.2)]


def test_it_ends_where_the_ledger_stands(tmp_path: Path) -> None:
    village = read(configured(tmp_path)).datasets["village"]
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger.open_dataset("village", epsilon=village.epsilon, delta=village.delta)
    step_by_step, at_once = Trails(), Trails()
    for n, loss in enumerate(LOSSES):
        who, delta = ("ann", "bob")[n % 2], 1e-7 if isinstance(loss, hb.GaussianDP) else 0.0
        ledger.charge("village", who, key=f"number-{n}", question="{}", loss=loss, delta=delta)
        with step_by_step.of(ledger, village) as trail:
            assert trail._total[-1][1] == pytest.approx(4 - ledger.remaining("village"), abs=1e-12)
            assert trail.length == n + 1
    with step_by_step.of(ledger, village) as one, at_once.of(ledger, village) as other:
        assert one.chart("ann") == other.chart("ann")
        assert one.spent() == other.spent()
        assert set(one.spent()) == {"ann", "bob"}
        drawn = one.chart("ann").lines
        assert [line.label for line in drawn] == ["all analysts together", "you", "the limit"]
        assert drawn[0].points[-1][1] >= drawn[1].points[-1][1]
        assert one.chart("nobody").lines[1].points[-1][1] == 0
        assert [line.label for line in one.chart(None).lines] == ["all analysts together", "the limit"]
    ledger.close()


def test_long_trails_are_thinned_out(tmp_path: Path) -> None:
    village = read(configured(tmp_path)).datasets["village"]
    ledger = Ledger("sqlite:///" + str(tmp_path / "ledger.db"))
    ledger.open_dataset("village", epsilon=village.epsilon, delta=village.delta)
    for n in range(450):
        ledger.charge("village", "ann", key=f"number-{n:05}", question="{}", loss=hb.PureDP(0.005))
    with Trails().of(ledger, village) as trail:
        [total, *_] = trail.chart(None).lines
        assert len(total.points) <= 2 * (STEPS + 3)
        heights = [y for _, y in total.points]
        assert heights == sorted(heights)
        assert heights[-1] == pytest.approx(4 - ledger.remaining("village"))
    ledger.close()
