"""The curator: one budget over all analysts of a data set, kept in a ledger that survives crashes and races."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.curator.accounts import Account, Accounts
    from hubbub.curator.backup import restore
    from hubbub.curator.chain import Entry, Limit
    from hubbub.curator.client import Client, RemoteTable, connect
    from hubbub.curator.ledger import Charge, Ledger
    from hubbub.curator.service import Curator
    from hubbub.curator.store import migrate

_HOME = {
    "Account": "accounts",
    "Accounts": "accounts",
    "Charge": "ledger",
    "Client": "client",
    "Curator": "service",
    "Entry": "chain",
    "Ledger": "ledger",
    "Limit": "chain",
    "RemoteTable": "client",
    "connect": "client",
    "migrate": "store",
    "restore": "backup",
}
__all__ = [
    "Account",
    "Accounts",
    "Charge",
    "Client",
    "Curator",
    "Entry",
    "Ledger",
    "Limit",
    "RemoteTable",
    "connect",
    "migrate",
    "restore",
]


def __getattr__(name: str) -> Any:
    """Loaded on first use: who only asks a curator needs no database."""
    if name not in _HOME:
        raise AttributeError(f"module 'hubbub.curator' has no attribute {name!r}")
    return getattr(import_module(f"hubbub.curator.{_HOME[name]}"), name)
