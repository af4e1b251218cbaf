"""A configuration is read as a whole; what is wrong in it is named with its line and what to write instead."""

from pathlib import Path

import pytest
from curator.village import configured

from hubbub.curator.config import read
from hubbub.curator.drafting import draft
from hubbub.curator.service import Curator
from hubbub.domains.columns import Category, Key, Moment, Number
from hubbub.errors import ConfigError, ParameterError

HEAD = '[datasets.t]\nsource = "t.csv"\nepsilon = 1.0\n'


def written(folder: Path, text: str) -> Path:
    (folder / "t.csv").write_text("a,b\n1,x\n")
    path = folder / "curator.toml"
    path.write_text(text)
    return path


def test_every_form_of_column(tmp_path: Path) -> None:
    text = HEAD + (
        "[datasets.t.columns]\na = [0, 10]\nb = ['x', 'y']\nc = 'key'\nd = [2020-01-01, 2021-01-01]\n"
        "e = { low = 0, high = 1, step = 0.25, nullable = false }\nf = { categories = [1, 2, 3] }\n"
    )
    found = read(written(tmp_path, text)).datasets["t"].schema.columns
    assert found["a"] == Number(0, 10)
    assert found["b"] == Category(("x", "y"))
    assert found["c"] == Key()
    assert isinstance(found["d"], Moment)
    assert found["e"] == Number(0, 1, 0.25, False)
    assert found["f"] == Category((1, 2, 3))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[server\n", 1, "Expected"),
        ("[server]\nport = 'x'\n" + HEAD, 2, "server.port must be a number > 0"),
        ("[server]\nprot = 1\n" + HEAD, 2, "server.prot is not known here; known are .*port"),
        ("[server]\nopen_pages = 3\n" + HEAD, 2, "true or false"),
        ("[server]\nledger = '$NOT_SET_ANYWHERE'\n" + HEAD, 2, "environment variable NOT_SET_ANYWHERE"),
        ("[server]\nport = 1\n", 0, "declare at least one data set"),
        (HEAD, 1, "declares no columns"),
        (HEAD + "[datasets.t.columns]\na = [10, 0]\n", 5, "low <= high"),
        (HEAD + "[datasets.t.columns]\na = { low = 1 }\n", 5, "known form"),
        (HEAD + "[datasets.t.columns]\na = 3\n", 5, "not a declaration"),
        (HEAD + "delta = 2\n[datasets.t.columns]\na = [0, 1]\n", 4, "delta"),
        (HEAD.replace("1.0", "-1") + "[datasets.t.columns]\na = [0, 1]\n", 3, "must be > 0"),
        (HEAD.replace("t.csv", "no.csv") + "[datasets.t.columns]\na = [0, 1]\n", 2, "not a file that exists"),
        (HEAD + "duckdb = 't.csv'\n[datasets.t.columns]\na = [0, 1]\n", 1, "once"),
        (HEAD + "max_rows = 3\n[datasets.t.columns]\na = [0, 1]\n", 1, "name the unit"),
        (HEAD + "neighbours = 'all'\n[datasets.t.columns]\na = [0, 1]\n", 1, "neighbours"),
        (HEAD.replace("[datasets.t]", "[datasets.'no word']") + "[datasets.'no word'.columns]\na = [0, 1]\n", 1, "wor"),
        (HEAD.replace("epsilon = 1.0\n", "") + "[datasets.t.columns]\na = [0, 1]\n", 1, "no limit"),
        ("datasets = 3\n", 1, "must be a table"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as problem:
        read(written(tmp_path, text))
    assert problem.value.line == line


def test_a_missing_file_and_a_missing_column_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hubbub init"):
        read(tmp_path / "none.toml")
    path = written(tmp_path, HEAD + "[datasets.t.columns]\nz = [0, 1]\n")
    with pytest.raises(ConfigError, match="not in the source"):
        Curator(read(path))


def test_what_an_engine_says_of_its_place_stays_unsaid(tmp_path: Path) -> None:
    text = HEAD.replace('source = "t.csv"', "postgres = 'postgresql://u:hunter2@127.0.0.1:1/x'\ntable = 't'")
    path = written(tmp_path, text + "[datasets.t.columns]\na = [0, 1]\n")
    with pytest.raises(ConfigError, match="cannot be opened") as problem:
        Curator(read(path))
    assert "hunter2" not in str(problem.value)


def test_limits_cannot_be_changed_by_editing_the_file(tmp_path: Path) -> None:
    path = configured(tmp_path)
    Curator(read(path)).close()
    path.write_text(path.read_text().replace("epsilon = 4.0", "epsilon = 400.0"))
    with pytest.raises(ParameterError, match="other limits"):
        Curator(read(path))


def test_a_draft_holds_names_and_answers_but_no_row(tmp_path: Path) -> None:
    configured(tmp_path)
    source = tmp_path / "village.parquet"
    answers = {"Which": "person", "What": "2", "And": "1e-6", "age": "0, 120", "ward": "north, south", "shop": "key"}

    def ask(question: str, default: str) -> str:
        return answers.get(question.split()[0].rstrip(":"), default)

    path = tmp_path / "drafted.toml"
    path.write_text(draft(source, name="village", ask=ask))
    found = read(path).datasets["village"]
    assert found.schema.unit == "person"
    assert found.schema.columns == {"age": Number(0, 120), "ward": Category(("north", "south")), "shop": Key()}
    silent = draft(source, name="village")
    for word in ("baker", "smith", "yes", "north"):
        assert word not in silent
    with pytest.raises(ParameterError):
        draft(tmp_path / "none.csv", name="x")
    with pytest.raises(ParameterError, match="not a column"):
        draft(source, name="x", ask=lambda question, default: "nobody" if question.startswith("Which") else default)
