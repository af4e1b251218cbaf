"""The site: what is written by programs is current, what is named exists, links lead somewhere."""

import importlib.util
import re
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import pages
import pytest
import yaml

import hubbub

DOCS = pages.ROOT / "docs"
MADE = {"references.md"}
"""Pages that the site's hook makes: these, and all under notes/ and reference/."""


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["coverage", "comparison"])
def test_written_pages_are_current(name: str) -> None:
    assert (DOCS / f"{name}.md").read_text() == program(f"write_{name}").page(), f"run python docs/write_{name}.py"


def test_everything_asked_for_is_covered_by_pages_names_and_tests() -> None:
    tool = program("write_coverage")
    counts = {"D": 12, "S": 5, "M": 8, "C": 7, "T": 12, "L": 8, "A": 7}
    assert [row.id for row in tool.rows()] == [
        f"{part}{n}" for part, most in counts.items() for n in range(1, most + 1)
    ]
    assert len(tool.rows()) == 59
    tests = {
        name
        for path in (pages.ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    notes = tool.pages()
    for row in tool.rows():
        assert notes[row.id], f"no page of the notes is about {row.id}"
        assert row.names
        assert row.tests
        assert set(row.tests.split()) <= tests, row.id
        assert all((DOCS / page).exists() for page in row.pages.split()), row.id
        for name in row.names.split():
            assert found(name) is not None, name


def found(name: str) -> Any:
    def step(thing: Any, word: str) -> Any:
        if isinstance(thing, ModuleType) and not hasattr(thing, word):
            return importlib.import_module(f"{thing.__name__}.{word}")
        return getattr(thing, word)

    return reduce(step, name.split("."), hubbub)


def test_the_reference_names_everything_public() -> None:
    tool = program("write_reference")
    made = tool.pages()
    assert len(made) == len(tool.ROOMS) + 1
    for room in tool.ROOMS:
        text = made[f"{room.replace('.', '-')}.md"]
        for name in tool.names(room):
            assert f"## {name}\n" in text
        assert " at 0x" not in text
    assert set(hubbub.__all__) <= set(tool.names("hubbub"))
    for word in ("demo", "account", "query", "explain", "serve", "attack reconstruct"):
        assert f"## hubbub {word}\n" in made["command-line.md"]


def entries(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [page for entry in nav for value in entry.values() for page in entries(value)]


def test_the_navigation_names_every_page_once() -> None:
    nav = entries(yaml.safe_load((pages.ROOT / "mkdocs.yml").read_text())["nav"])
    assert len(nav) == len(set(nav))
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert set(nav) == written | MADE | {"notes", "reference"}


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s#]*)(?:#[^)\s]*)?\)", page.read_text()):
        target = (page.parent / link).resolve() if link else page
        where = str(target.relative_to(DOCS))
        if where.startswith("notes/"):
            target = pages.NOTES / where.removeprefix("notes/")
        assert target.exists() or where in MADE, link


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_pages_that_others_run_are_run_by_them(page: Path) -> None:
    for test in pages.ELSEWHERE.findall(page.read_text()):
        assert page.name in (pages.ROOT / test).read_text(), f"{test} does not mention {page.name}"


def test_the_site_asks_nobody_else_for_anything() -> None:
    theme = yaml.safe_load((pages.ROOT / "mkdocs.yml").read_text())
    assert theme["theme"]["font"] is False
    assert theme["plugins"] == ["search"]
    for path in [*DOCS.rglob("*.md"), *DOCS.rglob("*.css"), *pages.NOTES.rglob("*.md")]:
        assert not re.search(r"<(?:script|img|link|iframe)|!\[[^]]*\]\(https?:|url\(", path.read_text()), path


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("e**(-k) <= 1", r"e\*\*(-k) &lt;= 1"),
        ("`any_row` and ``a * b``: a_b", r"`any_row` and ``a * b``: a\_b"),
        ("[CKS20]", r"\[CKS20\]"),
    ],
)
def test_formulas_mean_themselves(line: str, shown: str) -> None:
    assert program("write_reference").escaped(line) == shown


def test_every_paper_is_listed() -> None:
    keys = re.findall(r"^@\w+\{(\w+),", (DOCS / "references.bib").read_text(), re.MULTILINE)
    listed = re.findall(
        r"^- \*\*(\w+)\*\*: .+, \*.+\*\. .+, \d{4}\.$", program("write_reference").references(), re.MULTILINE
    )
    assert listed == keys
