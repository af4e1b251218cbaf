"""SQLite on a disk that fails or loses power: a VFS between SQLite and the system, in the library Python itself uses.

Every call of SQLite to its files is counted, may be made to fail, and is remembered until it is synced.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p, cast, sizeof
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIBRARY = ctypes.CDLL(_sqlite3.__file__)
LIBRARY.sqlite3_vfs_find.restype = c_void_p

SECTOR, SHM_LOCK = 512, 2
CODES = {"EIO": 10, "ENOSPC": 13, "READONLY": 8, "BUSY": 5, "CANTOPEN": 14, "NOMEM": 7}

METHODS: dict[str, tuple[Any, ...]] = {  # of a file, after iVersion; each takes the file first
    "close": (),
    "read": (c_void_p, c_int, c_int64),
    "write": (c_void_p, c_int, c_int64),
    "truncate": (c_int64,),
    "sync": (c_int,),
    "size": (c_void_p,),
    "lock": (c_int,),
    "unlock": (c_int,),
    "check_lock": (c_void_p,),
    "control": (c_int, c_void_p),
    "sector_size": (),
    "characteristics": (),
    "shm_map": (c_int, c_int, c_int, c_void_p),
    "shm_lock": (c_int, c_int, c_int),
    "shm_barrier": (),
    "shm_unmap": (c_int,),
}
TYPES = {name: CFUNCTYPE(None if name == "shm_barrier" else c_int, c_void_p, *rest) for name, rest in METHODS.items()}
UNCOUNTED = {"close", "sector_size", "characteristics", "shm_barrier", "unlock", "control", "shm_unmap"}
"""Calls whose failure SQLite does not look at, or which cannot fail in practice."""


class Methods(Structure):
    _fields_ = [("version", c_int), *TYPES.items()]


class Vfs(Structure):
    pass


OPEN = CFUNCTYPE(c_int, POINTER(Vfs), c_void_p, c_void_p, c_int, c_void_p)
DELETE = CFUNCTYPE(c_int, POINTER(Vfs), c_char_p, c_int)
SLEEP = CFUNCTYPE(c_int, POINTER(Vfs), c_int)
ACCESS = CFUNCTYPE(c_int, POINTER(Vfs), c_char_p, c_int, c_void_p)
Vfs._fields_ = [
    ("version", c_int),
    ("file_size", c_int),
    ("longest_path", c_int),
    ("next", c_void_p),
    ("name", c_char_p),
    ("data", c_void_p),
    ("open", OPEN),
    ("delete", DELETE),
    ("access", ACCESS),
    *((name, c_void_p) for name in ("full", "dlopen", "dlerror", "dlsym", "dlclose", "randomness")),
    ("sleep", SLEEP),
    *((name, c_void_p) for name in ("time", "error", "time64", "set_call", "get_call", "next_call")),
]


class File(Structure):
    """Ours, in front of the system's own, which follows it in memory."""

    _fields_ = [("methods", c_void_p), ("number", c_int64)]


@dataclass
class Image:
    """What a file has on disk for sure, and what was written to it since it was last synced."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes] | int] = field(default_factory=list)
    """Writes (where, what) and truncations (to what size), in order."""
    forgotten: bool = False
    """Deleted, though that may not have reached the disk."""

    def copy(self) -> Image:
        return Image(bytearray(self.durable), list(self.pending), self.forgotten)

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.durable, change)
        self.pending.clear()

    def after_power_loss(self, coin: Callable[[], bool]) -> bytes:
        """The durable bytes, with those sectors of later writes, and truncations, for which the coin says so."""
        found = bytearray(self.durable)
        for change in self.pending:
            if isinstance(change, int):
                if coin():
                    _apply(found, change)
                continue
            where, what = change
            start = where
            while start < where + len(what):
                end = min((start // SECTOR + 1) * SECTOR, where + len(what))
                if coin():
                    _apply(found, (start, what[start - where : end - where]))
                start = end
        return bytes(found)


def _apply(body: bytearray, change: tuple[int, bytes] | int) -> None:
    if isinstance(change, int):
        del body[change:]
        return
    where, what = change
    body.extend(bytes(max(0, where + len(what) - len(body))))
    body[where : where + len(what)] = what


class Disk:
    """The disk as SQLite sees it through this VFS."""

    def __init__(self) -> None:
        self.calls = 0
        self.said: list[str] = []
        self.fail: Callable[[int, str], int] = lambda _number, _name: 0
        """The error code of the n-th call; 0 lets it through."""
        self.before: Callable[[int], None] = lambda _number: None
        """Called before every counted call, with its number."""
        self.lies_after_failure = False
        """What a failed sync did not write stays in the cache as if it had been written, as on Linux."""
        self.images: dict[str, Image] = {}

    def arm(self, fail: Callable[[int, str], int]) -> None:
        """Counts from one again, and fails as told."""
        self.calls, self.said, self.fail = 0, [], fail

    def heal(self) -> None:
        self.fail = lambda _number, _name: 0

    def snapshot(self) -> dict[str, Image]:
        return {path: image.copy() for path, image in self.images.items()}

    def _called(self, name: str) -> int:
        self.calls += 1
        self.said.append(name)
        self.before(self.calls)
        code = self.fail(self.calls, name)
        return CODES["EIO"] if code == CODES["READONLY"] and name == "shm_map" else code  # there it means success


def rebuild(images: dict[str, Image], folder: Path, coin: Callable[[], bool]) -> None:
    """The disk after a loss of power, in another folder; only files that were synced or written are there."""
    for path, image in images.items():
        if image.forgotten and coin():
            continue
        body = image.after_power_loss(coin)
        if body or image.pending:
            (folder / Path(path).name).write_bytes(body)


def coins(seed: int) -> Callable[[], bool]:
    """A coin that says never, always, or sometimes, so that extremes are tried as well."""
    generator = random.Random(seed)
    share = generator.choice([0.0, 1.0, 0.5, 0.1, 0.9])
    return lambda: generator.random() < share


_kept: list[Any] = []
"""What SQLite may still call: connections can outlive the test that opened them."""


@contextmanager
def faulty() -> Iterator[tuple[str, Disk]]:
    """The name of a VFS of SQLite, to be given in a URL, and the disk behind it."""
    disk = Disk()
    real = cast(LIBRARY.sqlite3_vfs_find(None), POINTER(Vfs))
    room = (sizeof(File) + 7) // 8 * 8
    opened: dict[int, str | None] = {}
    numbers = itertools.count(1)

    def inner(file: int) -> int:
        return file + room

    def method(file: int, name: str) -> Any:
        table = cast(cast(inner(file), POINTER(c_void_p))[0], POINTER(Methods)).contents
        return getattr(table, name)

    def image(file: int) -> Image | None:
        path = opened[cast(file, POINTER(File)).contents.number]
        return None if path is None else disk.images[path]

    def passing(name: str) -> Callable[..., int]:
        def call(file: int, *rest: Any) -> int:
            if name not in UNCOUNTED:
                code = disk._called(name)
                if code:
                    return code
            return int(method(file, name)(inner(file), *rest) or 0)

        return call

    def shm_lock(file: int, start: int, amount: int, flags: int) -> int:
        code = disk._called("shm_lock") if flags & SHM_LOCK else 0  # letting go does not fail
        return code or int(method(file, "shm_lock")(inner(file), start, amount, flags))

    def write(file: int, what: int, amount: int, where: int) -> int:
        code = disk._called("write")
        if code:
            return code
        kept = image(file)
        if kept is not None:
            kept.pending.append((where, ctypes.string_at(what, amount)))
        return int(method(file, "write")(inner(file), what, amount, where))

    def truncate(file: int, size: int) -> int:
        code = disk._called("truncate")
        if code:
            return code
        kept = image(file)
        if kept is not None:
            kept.pending.append(size)
        return int(method(file, "truncate")(inner(file), size))

    def sync(file: int, flags: int) -> int:
        code, kept = disk._called("sync"), image(file)
        if code:
            if disk.lies_after_failure and kept is not None:
                kept.pending.clear()
            return code
        if kept is not None:
            kept.sync()
            kept.forgotten = False
        return int(method(file, "sync")(inner(file), flags))

    def open_(_: Any, name: int | None, file: int, flags: int, out: int | None) -> int:
        code = disk._called("open")
        ours = cast(file, POINTER(File)).contents
        ours.methods = None
        if code:
            return code
        code = int(real.contents.open(real, name, inner(file), flags, out))
        if cast(inner(file), POINTER(c_void_p))[0]:
            path = None if name is None else ctypes.string_at(name).decode()
            ours.number = next(numbers)
            opened[ours.number] = path
            if path is not None:
                there = disk.images.get(path)
                if there is None:
                    begun = Path(path).read_bytes() if Path(path).exists() else b""
                    disk.images[path] = Image(bytearray(begun))
                elif there.forgotten:
                    there.pending.append(0)  # a new file: what the old one held may still come back
            ours.methods = ctypes.addressof(table)
        return code

    def delete(_: Any, name: bytes, folder: int) -> int:
        code = disk._called("delete")
        if code:
            return code
        gone = disk.images.get(name.decode())
        if gone is not None:
            if folder:
                del disk.images[name.decode()]
            else:
                gone.forgotten = True
        return int(real.contents.delete(real, name, folder))

    def access(_: Any, name: bytes, flags: int, out: int) -> int:
        code = disk._called("access")
        return code or int(real.contents.access(real, name, flags, out))

    special = {"shm_lock": shm_lock, "write": write, "truncate": truncate, "sync": sync}
    methods = {name: type_(special.get(name) or passing(name)) for name, type_ in TYPES.items()}
    table = Methods(2, *methods.values())
    vfs = Vfs()
    ctypes.memmove(byref(vfs), real, sizeof(Vfs))
    label = f"hubbub{len(_kept)}"
    vfs.version = 2
    vfs.file_size = room + real.contents.file_size
    vfs.next, vfs.name = None, label.encode()
    vfs.open, vfs.delete, vfs.access = OPEN(open_), DELETE(delete), ACCESS(access)
    vfs.sleep = SLEEP(lambda _, amount: amount)  # whoever waits for a lock has waited
    _kept.append((vfs, table, methods))
    assert LIBRARY.sqlite3_vfs_register(byref(vfs), 0) == 0
    try:
        yield label, disk
    finally:
        LIBRARY.sqlite3_vfs_unregister(byref(vfs))


def url(path: Path, label: str) -> str:
    """The URL of a ledger on the disk of a VFS."""
    return f"sqlite:///file:{path}?vfs={label}&uri=true"
