"""A link to PostgreSQL that is cut: a proxy that passes on the protocol's messages one by one, up to a given one."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

import sqlalchemy as sa

Side = Literal["client", "server"]


class Link:
    """Counts the messages of either side, over all connections, since it was told where to cut."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.heal()

    def cut_at(self, whose: Side, number: int, delivered: bool) -> None:
        """The link is cut at this message of this side, which still arrives, or does not."""
        with self._lock:
            self._whose, self._number, self._delivered = whose, number, delivered
            self._seen, self.was_cut = 0, False

    def heal(self) -> None:
        self.cut_at("client", 0, False)

    def passes(self, whose: Side) -> tuple[bool, bool]:
        """Whether the next message arrives, and whether the link is cut then."""
        with self._lock:
            if whose != self._whose or self._number == 0:
                return True, False
            self._seen += 1
            if self._seen < self._number:
                return True, False
            self.was_cut = True
            return self._delivered and self._seen == self._number, True


def _exactly(source: socket.socket, amount: int) -> bytes:
    parts = []
    while amount:
        part = source.recv(amount)
        if not part:
            raise ConnectionError
        parts.append(part)
        amount -= len(part)
    return b"".join(parts)


def _messages(source: socket.socket, first: bool) -> Iterator[bytes]:
    """Whole messages: a type (but for a client's first) and a length that counts itself."""
    while True:
        kind = b"" if first else _exactly(source, 1)
        length = _exactly(source, 4)
        yield kind + length + _exactly(source, struct.unpack("!I", length)[0] - 4)
        first = False


def _pump(link: Link, whose: Side, source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        for message in _messages(source, whose == "client"):
            arrives, cut = link.passes(whose)
            if arrives:
                target.sendall(message)
            if cut:
                break
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy(url: str) -> Iterator[tuple[str, Link]]:
    """The same database through a link that can be cut: its URL, and the link."""
    where, link, sockets = sa.make_url(url), Link(), []
    door = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = door.accept()
                server = socket.create_connection((where.host, where.port))
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    sockets.append(end)
                ways = (("client", client, server), ("server", server, client))
                for whose, source, target in ways:
                    threading.Thread(target=_pump, args=(link, whose, source, target), daemon=True).start()

    host = threading.Thread(target=serve, daemon=True)
    host.start()
    query = {"sslmode": "disable", "gssencmode": "disable"}
    through = where.set(host="127.0.0.1", port=door.getsockname()[1]).update_query_dict(query)
    try:
        yield through.render_as_string(hide_password=False), link
    finally:
        door.shutdown(socket.SHUT_RDWR)
        door.close()
        host.join()
        for end in sockets:
            end.close()
