"""``hubbub attack``: what answers give away, on made-up people, without noise and with hubbub's."""

from hubbub.cli.attack.commands import app

__all__ = ["app"]
