"""What the attacks' reports share: a progress bar, a table, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from hubbub.errors import ParameterError


@contextmanager
def progress(total: int, words: str) -> Iterator[Callable[[], object]]:
    """A bar on standard error that goes away when done; calling what it gives moves it by one."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=total)
        yield lambda: bar.advance(task)


def show(
    about: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    closing: str,
    *,
    as_json: bool,
) -> None:
    """The rows as JSON with what they are about; or as a table with these titles and a closing sentence."""
    if as_json:
        print(json.dumps({**about, "rows": rows}))
        return
    console = Console()
    table = Table(title=str(about["story"]), title_justify="left", title_style="bold")
    for place, title in enumerate(titles.values()):
        table.add_column(title, no_wrap=place == 0)
    for row in rows:
        table.add_row(*(_cell(row.get(key)) for key in titles))
    console.print(table)
    console.print(closing, soft_wrap=True)


def say_where(picture: Path | None, *, as_json: bool) -> None:
    """Names the picture that was written, if one was."""
    if picture and not as_json:
        Console().print(f"The picture is in [bold]{picture}[/].", soft_wrap=True)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    return str(value)


def percent(share: float) -> str:
    """97.3 %, and never 100.0 % of anything less."""
    return f"{share:.1%}" if share < 0.9995 or share == 1 else ">99.9%"


def at_least(name: str, value: int, least: int) -> int:
    """The value, refused if it is below the least."""
    if value < least:
        raise ParameterError(name, value, f"must be >= {least}")
    return value
