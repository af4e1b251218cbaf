"""The curator: one budget over all analysts of a data set, kept in a ledger that survives crashes and races."""

from hubbub.curator.accounts import Account, Accounts
from hubbub.curator.ledger import Charge, Entry, Ledger

__all__ = ["Account", "Accounts", "Charge", "Entry", "Ledger"]
