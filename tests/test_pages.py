"""Every page of the notes and of the site runs as it is printed, and the notes' table leaves none out."""

import re
from pathlib import Path

import pages
import pytest

TESTS = {
    name
    for path in (pages.ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^ *def (test_\w+)", path.read_text(), re.MULTILINE)
}
ROWS = re.findall(r"^\| .*?\| .*?\| (\[.*?)\| `(test_\w+)` \|$", (pages.NOTES / "README.md").read_text(), re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(pages.ROOT))


@pytest.mark.parametrize("page", [*pages.note_pages(), *pages.doc_pages()], ids=name)
def test_a_page_runs_and_comes_to_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages.run(page)
    for picture in pages.pictures(page):
        assert (tmp_path / picture).stat().st_size > 1000
        assert (pages.NOTES / "pictures" / picture).exists(), "run make pictures"


def test_the_table_of_the_notes_names_every_page_and_only_what_exists() -> None:
    assert len(ROWS) > 50
    listed = {link for cell, _ in ROWS for link in re.findall(r"\]\(([^)]+)\)", cell)}
    assert listed == {str(page.relative_to(pages.NOTES)) for page in pages.note_pages()}
    assert {test for _, test in ROWS} <= TESTS


@pytest.mark.parametrize("page", pages.note_pages(), ids=name)
def test_a_page_of_the_notes_says_what_it_is_about(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert re.fullmatch(r"\*Notes: .+ · Rows: [DSMCTLA]\d+(, [DSMCTLA]\d+)*\*", lines[2]), lines[2]
    assert len(lines) <= 120
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link


def test_the_list_of_errata_has_each() -> None:
    text = (pages.NOTES / "README.md").read_text()
    listed = text[text.index("## Where the notes are wrong") : text.index("## Every section")]
    with_errata = {p for p in pages.note_pages() if "**Erratum" in p.read_text()}
    assert {pages.NOTES / link for link in re.findall(r"\]\(([^)]+)\)", listed)} == with_errata


def test_every_picture_is_shown_by_a_page() -> None:
    shown = {picture for page in pages.note_pages() for picture in pages.pictures(page)}
    assert shown == {path.name for path in (pages.NOTES / "pictures").iterdir()}


@pytest.mark.parametrize(
    ("code", "right"),
    [
        ("1 + 1  # -> 2", True),
        ("1 + 1  # -> 3", False),
        ("2 / 3  # -> 0.667: two thirds", True),
        ("2 / 3  # -> 0.66", False),
        ("(1, -2 / 3)  # -> (1, -0.667)", True),
        ("(1, 2)  # -> (1, 2, 3)", False),
        ("{'a': 0.5}  # -> {'a': 0.5}", True),
        ("{'a': 0.5}  # -> {'b': 0.5}", False),
        ("x = 7  # -> 7", True),
        ("x = 7  # -> 8", False),
        ("float('inf')  # -> inf: for ever", True),
        ("'so'  # -> so", True),
        ("'so'  # -> no", False),
        ("True  # -> 1.5", False),
    ],
)
def test_what_comments_say_is_checked(code: str, right: bool, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n```python\n{code}\n```\n")
    if right:
        pages.run(page)
    else:
        with pytest.raises(AssertionError, match=r"page.md, line 4: said"):
            pages.run(page)


def test_unseen_code_runs_first(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- unseen\nx = 3\n-->\n```python\nx  # -> 3\n```\n")
    assert pages.run(page)["x"] == 3
