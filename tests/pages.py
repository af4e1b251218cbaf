"""Runs the Python of Markdown pages top to bottom, in one namespace, as a reader would.

A statement may say what comes of it: ``f(2)  # -> 4``. Numbers hold to the digits printed, other values as they print;
words after a colon are for the reader. A page may hold what runs unseen in a comment that begins ``<!-- unseen``. One
that needs more than a namespace says who runs it: ``<!-- run by tests/test_it.py -->``.

``python tests/pages.py`` draws the pictures of all pages anew.
"""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / "examples" / "notes"
BLOCK = re.compile(r"^```python\n(?P<shown>.*?)^```$|^<!-- unseen\n(?P<unseen>.*?)^-->$", re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"^<!-- run by (tests/\S+\.py) -->$", re.MULTILINE)
PICTURE = re.compile(r"!\[[^]]*\]\((?:\.\./)?pictures/([^)]+)\)")


def note_pages() -> list[Path]:
    """The pages of the notes, in the order of their names."""
    return sorted(path for path in NOTES.rglob("*.md") if path.name != "README.md")


def doc_pages() -> list[Path]:
    """The pages of the site that hold code and do not say that a test of their own runs it."""
    texts = {path: path.read_text() for path in sorted((ROOT / "docs").rglob("*.md"))}
    return [path for path, text in texts.items() if blocks(text) and not ELSEWHERE.search(text)]


def blocks(text: str) -> list[tuple[int, str]]:
    """Each block of Python with the line of the page it begins on."""
    found = []
    for match in BLOCK.finditer(text):
        name = "shown" if match["shown"] is not None else "unseen"
        found.append((text.count("\n", 0, match.start(name)) + 1, match[name]))
    return found


def run(path: Path, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Runs a page and returns its names; what a comment says and the code does not is an AssertionError."""
    names = {"__name__": "__page__"} if names is None else names
    for line, code in blocks(path.read_text()):
        run_block(path, line, code, names)
    return names


def run_block(path: Path, line: int, code: str, names: dict[str, Any]) -> None:
    """Runs one block of a page, which begins on this line."""
    comments = said(code)
    for statement in ast.parse(code, str(path)).body:
        words = comments.get(statement.end_lineno or 0)
        ast.increment_lineno(statement, line - 1)
        where = f"{path.name}, line {statement.lineno}"
        if words is None:
            exec(compile(ast.Module([statement], []), str(path), "exec"), names)
        elif isinstance(statement, ast.Expr):
            agree(eval(compile(ast.Expression(statement.value), str(path), "eval"), names), words, where)
        else:
            assert isinstance(statement, ast.Assign), f"{where}: only a value can be told by a comment"
            exec(compile(ast.Module([statement], []), str(path), "exec"), names)
            agree(eval(ast.unparse(statement.targets[0]), names), words, where)


def said(code: str) -> dict[int, str]:
    """What comments say comes of the statement that ends on their line."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return {t.start[0]: t.string[4:].strip() for t in tokens if t.type == tokenize.COMMENT and t.string[:4] == "# ->"}


def agree(value: Any, words: str, where: str) -> None:
    """Refuses a value that is not what the words say."""
    for text in (words, words.partition(": ")[0]):
        if text in (str(value), repr(value)):
            return
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            continue
        assert same(value, node, text), f"{where}: said {words}, came {value!r}"
        return
    raise AssertionError(f"{where}: said {words}, came {value!r}")


def same(value: Any, node: ast.expr, text: str) -> bool:
    """Whether a value is what a literal says, numbers to the digits printed."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(node, ast.Tuple | ast.List):
        fits = isinstance(value, list | tuple) and len(value) == len(node.elts)
        return fits and all(same(v, n, text) for v, n in zip(value, node.elts, strict=True))
    if isinstance(node, ast.Dict):
        keys = [ast.literal_eval(key) for key in node.keys if key]
        return list(value) == keys and all(same(v, n, text) for v, n in zip(value.values(), node.values, strict=True))
    try:
        literal = ast.literal_eval(node)
    except ValueError:
        return False
    if isinstance(value, float) and isinstance(literal, float):
        printed = Decimal((ast.get_source_segment(text, node) or "").lstrip("-"))
        unit = 10.0 ** int(printed.as_tuple().exponent)
        return abs(value - literal) <= 0.5 * unit * (1 + 1e-9)
    return bool(value == literal)


def pictures(page: Path) -> list[str]:
    """The names of the pictures a page shows."""
    return PICTURE.findall(page.read_text())


if __name__ == "__main__":
    (NOTES / "pictures").mkdir(exist_ok=True)
    os.chdir(NOTES / "pictures")
    for page in note_pages():
        if pictures(page):
            run(page)
            print(page.relative_to(ROOT), *pictures(page))
