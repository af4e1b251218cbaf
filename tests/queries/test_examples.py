"""Every page of examples/ runs, on small made-up tables of the same shape."""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def online_retail(folder: Path) -> None:
    frame = pd.DataFrame({"CustomerID": np.arange(900) % 300, "InvoiceNo": np.arange(900)})
    frame["StockCode"] = np.where(frame.index % 3, "85123A", "22423")
    frame["Quantity"], frame["UnitPrice"], frame["Country"] = 2, 2.5, "France"
    frame["InvoiceDate"] = "2011-05-01T08:26"
    frame.to_csv(folder / "online_retail.csv.gz", index=False)


def teaching_evaluations(folder: Path) -> None:
    k = np.arange(4000)
    frame = pd.DataFrame({"s": k % 1000, "d": k % 3, "studage": 2, "lectage": 1, "service": k % 2, "dept": 1 + k % 15})
    frame["y"] = 1 + k % 5
    frame.to_csv(folder / "lme4_InstEval.csv.gz", index=False)


def forum_phrases(folder: Path) -> None:
    frame = pd.DataFrame({"user": np.arange(2000) % 1000, "ngram": np.where(np.arange(2000) < 1000, "it s", "i m")})
    frame.to_csv(folder / "reddit_user_ngrams.csv.gz", index=False)


def census(folder: Path) -> None:
    sizes = {"PUMA": 5, "YEAR": 7, "SEX": 2, "AGE": 18, "LABFORCE": 3, "INCTOT": 22}
    (folder / "temporal-match2-domain.json").write_text(json.dumps(sizes))
    frame = pd.DataFrame({name: np.arange(500) % size for name, size in sizes.items()})
    frame.to_csv(folder / "temporal-match2.csv.gz", index=False)


PAGES = {page.__name__: page for page in (online_retail, teaching_evaluations, forum_phrases, census)}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    make: Callable[[Path], None] = PAGES[name]
    make(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path), str(tmp_path / "picture.png")])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert (tmp_path / "picture.png").stat().st_size > 1000
    assert "<Budget(" in capsys.readouterr().out


def test_every_page_is_run() -> None:
    assert {page.stem for page in EXAMPLES.glob("*.py")} == set(PAGES)
