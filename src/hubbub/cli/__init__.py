"""The ``hubbub`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line; without the ``cli`` extra, says how to install it."""
    try:
        from hubbub.cli.app import app
    except ImportError as missing:
        from hubbub.errors import MissingExtra

        print(MissingExtra("cli"), f"({missing.name} is missing)", file=sys.stderr)
        sys.exit(2)
    app()
