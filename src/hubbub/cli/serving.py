"""``hubbub serve``, ``init``, ``owner``: the curator from the command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from hubbub.errors import MissingExtra, ParameterError

if TYPE_CHECKING:
    from hubbub.curator.config import Config


def write_config(source: Path, target: Path, name: str) -> None:
    """Writes a configuration, asking a person where there is one."""
    from hubbub.curator.drafting import draft

    if target.exists():
        raise ParameterError("config", str(target), "exists already", "name another file with --config")
    ask = (lambda question, default: str(typer.prompt(question, default=default, err=True))) if _person() else None
    text = draft(source.resolve(), name=name, ask=ask)
    target.write_text(text)
    typer.echo(f"{target} is written; look through it, then run  hubbub serve {target}")


def _person() -> bool:
    return sys.stdin.isatty()


def serve(path: Path, workers: int) -> None:
    """Checks everything, then listens until stopped."""
    try:
        import uvicorn
    except ImportError as missing:
        raise MissingExtra("server") from missing
    from hubbub.curator.app import CONFIG
    from hubbub.curator.config import read

    config = read(path)
    first = _checked(config)
    os.environ[CONFIG] = str(config.path.resolve())
    console = Console(stderr=True)
    console.print(f"[bold]hubbub[/] listens on http://{config.server.host}:{config.server.port}")
    if first is not None:
        console.print(f"the owner's token, shown this once: [bold]{first}[/]")
    uvicorn.run(
        "hubbub.curator.app:from_environment",
        factory=True,
        host=config.server.host,
        port=config.server.port,
        workers=workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=int(config.server.timeout) + 5,
        h11_max_incomplete_event_size=32_768,
    )


def _checked(config: Config) -> str | None:
    """Opens every data set once and adds the ledger up; the token of a first owner, where there is none yet."""
    from hubbub.curator.service import Curator

    curator = Curator(config)
    try:
        for name in curator.datasets:
            curator.ledger.verify(name)
        if any(account.role == "owner" for account in curator.accounts.everybody()):
            return None
        return curator.accounts.add("owner", "owner")
    finally:
        curator.close()


def new_owner_token(path: Path, name: str) -> str:
    """A token for an owner: a new account, or a new token for one that is there. For whoever can read the ledger."""
    from hubbub.curator.accounts import Accounts
    from hubbub.curator.config import read

    accounts = Accounts(read(path).server.ledger)
    try:
        known = {account.name: account for account in accounts.everybody()}
        if name not in known:
            return accounts.add(name, "owner")
        if known[name].role != "owner":
            raise ParameterError("name", name, "is an analyst's account", "name an owner's")
        return accounts.rotate(name)
    finally:
        accounts.close()


def backup(path: Path, target: Path) -> None:
    """Copies the ledger while it is in use."""
    from hubbub.curator.config import read
    from hubbub.curator.ledger import Ledger

    server = read(path).server
    ledger = Ledger(server.ledger, server.high_water_mark)
    try:
        ledger.backup(target)
    finally:
        ledger.close()
    typer.echo(f"the ledger is in {target}, and its chain adds up")


def restore(path: Path, source: Path) -> None:
    """Puts a copy in the ledger's place, if its chain adds up and it is not older than the mark says."""
    from hubbub.curator import backup as backups
    from hubbub.curator.config import read

    server = read(path).server
    backups.restore(source, server.ledger, server.high_water_mark)
    typer.echo(f"the ledger is restored from {source}")
