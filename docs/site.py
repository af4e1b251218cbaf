"""The hook of mkdocs.yml: adds the notes, the reference and the list of papers to the site, and hides unseen code."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs")]

import write_reference  # noqa: E402

NOTES = ROOT / "examples" / "notes"
PARTS = ("definitions", "sensitivity", "mechanisms", "composition", "attacks", "tables", "learning")
UNSEEN = re.compile(r"^<!-- (?:unseen\n.*?^|run by \S+ )-->\n*", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Fills in the navigation of what is not written by hand."""
    notes: list[Any] = [{"Sections and pages": "notes/README.md"}]
    for part in PARTS:
        listed = dict.fromkeys(re.findall(rf"\]\({part}/([a-z_]+\.md)\)", (NOTES / "README.md").read_text()))
        notes.append({part.capitalize(): [{_title(NOTES / part / name): f"notes/{part}/{name}"} for name in listed]})
    made = write_reference.pages()
    rooms = [{text.partition("\n")[0].removeprefix("# "): f"reference/{name}"} for name, text in made.items()]
    for entry in config.nav:
        if entry.get("The notes, running") == "notes":
            entry["The notes, running"] = notes
        if entry.get("Reference") == "reference":
            entry["Reference"] = rooms
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are kept or made elsewhere."""
    for path in sorted(NOTES.rglob("*")):
        if path.is_file():
            where = f"notes/{path.relative_to(NOTES)}"
            files.append(File.generated(config, where, abs_src_path=str(path)))
    for name, text in write_reference.pages().items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    files.append(File.generated(config, "references.md", content=write_reference.references()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Takes out what runs unseen; in the claims, formulas mean themselves."""
    if page.file.src_uri == "claims.md":
        return re.sub(
            r"(?<=\*\*: )(.*)$", lambda found: write_reference.escaped(found[1]), markdown, flags=re.MULTILINE
        )
    return UNSEEN.sub("", markdown)


def _title(path: Path) -> str:
    return path.read_text().partition("\n")[0].removeprefix("# ")
