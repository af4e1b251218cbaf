"""How the command line says no."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from hubbub.errors import HubbubError


@contextmanager
def refusals() -> Iterator[None]:
    """Turns what hubbub refuses into its one sentence and exit code 2."""
    try:
        yield
    except HubbubError as refusal:
        typer.echo(str(refusal), err=True)
        raise typer.Exit(2) from refusal
