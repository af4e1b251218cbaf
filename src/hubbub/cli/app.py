"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub import __version__
from hubbub.cli import village

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Private answers about personal data.")


@app.callback(invoke_without_command=True)
def hubbub(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Ask, train, attack and audit personal data under one privacy budget."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="Where the picture goes (.png, .svg or .html).")] = Path("village.png"),
    epsilon: Annotated[float, typer.Option(help="The price of each answer in the demo.")] = 0.5,
) -> None:
    """A village votes, a newcomer arrives: what exact answers give away, and what hubbub's do not."""
    village.tell(picture=picture, epsilon=epsilon)
