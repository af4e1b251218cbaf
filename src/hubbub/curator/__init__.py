"""The curator: one budget over all analysts of a data set, kept in a ledger that survives crashes and races."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.curator.accounts import Account, Accounts
    from hubbub.curator.client import Client, RemoteTable, connect
    from hubbub.curator.ledger import Charge, Entry, Ledger
    from hubbub.curator.service import Curator

_HOME = {
    "Account": "accounts",
    "Accounts": "accounts",
    "Charge": "ledger",
    "Client": "client",
    "Curator": "service",
    "Entry": "ledger",
    "Ledger": "ledger",
    "RemoteTable": "client",
    "connect": "client",
}
__all__ = ["Account", "Accounts", "Charge", "Client", "Curator", "Entry", "Ledger", "RemoteTable", "connect"]


def __getattr__(name: str) -> Any:
    """Loaded on first use: who only asks a curator needs no database."""
    if name not in _HOME:
        raise AttributeError(f"module 'hubbub.curator' has no attribute {name!r}")
    return getattr(import_module(f"hubbub.curator.{_HOME[name]}"), name)
