"""The high-water mark on a disk that fails or loses power at every step, and in other hands."""

import errno
import itertools
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.curator import Ledger, mark
from hubbub.errors import LedgerBroken, LedgerUnavailable


class Folder:
    """One folder of a disk, as ``os`` shows it: nothing lasts before it is synced, names before the folder is.

    Calls before ``fails`` go through, that one and those after it fail.
    """

    O_RDONLY, O_WRONLY, O_CREAT, O_TRUNC = os.O_RDONLY, os.O_WRONLY, os.O_CREAT, os.O_TRUNC

    def __init__(self, fails: int = 10**9, error: int = errno.EIO) -> None:
        self.names: dict[str, int] = {}
        self.durable_names: dict[str, int] = {}
        self.bodies: dict[int, bytes] = {}
        self.durable: dict[int, bytes] = {}
        self.open_files: dict[int, Any] = {}
        self.new, self.calls, self.fails, self.error = itertools.count(), 0, fails, error
        self.snapshots: list[list[dict[str, bytes]]] = []

    def _call(self) -> None:
        self.calls += 1
        self.snapshots.append(self.after_power_loss())
        if self.calls >= self.fails:
            raise OSError(self.error, "no")

    def open(self, path: Path, flags: int, _: int = 0) -> int:
        self._call()
        number = next(self.new)
        if path.suffix == "" and path.name == "folder":
            self.open_files[number] = None
            return number
        if path.name not in self.names:
            if not flags & os.O_CREAT:
                raise FileNotFoundError
            self.names[path.name] = next(self.new)
            self.bodies[self.names[path.name]] = self.durable[self.names[path.name]] = b""
        body = self.names[path.name]
        if flags & os.O_TRUNC:
            self.bodies[body] = b""
        self.open_files[number] = [body, 0]
        return number

    def write(self, file: int, what: bytes) -> int:
        self._call()
        part = what[: max(1, len(what) // 2)]  # as short as it may be
        self.bodies[self.open_files[file][0]] += part
        return len(part)

    def read(self, file: int, amount: int) -> bytes:
        self._call()
        body, at = self.open_files[file]
        part = self.bodies[body][at : at + min(amount, 7)]
        self.open_files[file][1] += len(part)
        return part

    def fsync(self, file: int) -> None:
        self._call()
        if self.open_files[file] is None:
            self.durable_names = dict(self.names)
        else:
            body = self.open_files[file][0]
            self.durable[body] = self.bodies[body]

    def replace(self, old: Path, new: Path) -> None:
        self._call()
        self.names[new.name] = self.names.pop(old.name)

    def close(self, file: int) -> None:
        del self.open_files[file]

    def after_power_loss(self) -> list[dict[str, bytes]]:
        """Everything the disk may hold if the power went now: old and new names, and unsynced files in any part."""
        found = []
        for names in (self.durable_names, self.names):
            variants: list[dict[str, bytes]] = [{}]
            for name, body in names.items():
                whole, kept = self.bodies[body], self.durable[body]
                forms = {kept, whole, whole[: len(whole) // 2], bytes(len(whole))} if whole != kept else {kept}
                variants = [{**v, name: form} for v in variants for form in forms]
            found += variants
        return found


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Folder], None]]:
    def put(folder: Folder) -> None:
        monkeypatch.setattr(mark, "os", folder)
        monkeypatch.setattr(mark.fcntl, "flock", lambda *_: None)

    return put


PATH = Path("/somewhere/folder/mark.json")


def begun(on: Callable[[Folder], None], **options: Any) -> Folder:
    folder = Folder()
    on(folder)
    mark.raise_to(PATH, "survey", 1, "one")
    folder.__dict__.update(options, calls=0, snapshots=[])
    return folder


def found_in(on: Callable[[Folder], None], files: dict[str, bytes]) -> Any:
    folder = Folder()
    on(folder)
    for name, body in files.items():
        folder.names[name] = next(folder.new)
        folder.bodies[folder.names[name]] = folder.durable[folder.names[name]] = body
    return mark.read(PATH)


def test_a_mark_is_old_or_new_after_any_loss_of_power_and_new_once_it_returned(on: Callable[[Folder], None]) -> None:
    folder = begun(on)
    mark.raise_to(PATH, "survey", 2, "two")
    moments, last = folder.snapshots, folder.after_power_loss()
    assert len(moments) > 8
    seen = {found_in(on, files)["survey"] for moment in moments for files in moment}
    assert seen == {(1, "one"), (2, "two")}
    assert {found_in(on, files)["survey"] for files in last} == {(2, "two")}


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_every_call_to_the_disk_may_fail(on: Callable[[Folder], None], error: int) -> None:
    for n in itertools.count(1):
        folder = begun(on, fails=n, error=error)
        try:
            mark.raise_to(PATH, "survey", 2, "two")
            break
        except LedgerUnavailable:
            folder.fails = 10**9
            assert mark.read(PATH)["survey"] in ((1, "one"), (2, "two"))
            mark.raise_to(PATH, "survey", 2, "two")
            assert {found_in(on, files)["survey"] for files in folder.after_power_loss()} == {(2, "two")}
    assert n > 8


@pytest.mark.parametrize("body", ["", "{", "[]", "7", '{"survey": 1}', '{"survey": ["x", "y"]}', '{"survey": [1]}'])
def test_a_mark_that_makes_no_sense_stops_everything(tmp_path: Path, body: str) -> None:
    (tmp_path / "mark.json").write_text(body)
    with pytest.raises(LedgerUnavailable):
        Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "mark.json")


def test_a_mark_never_goes_back_and_belongs_to_one_ledger(tmp_path: Path) -> None:
    path = tmp_path / "mark.json"
    mark.raise_to(path, "survey", 5, "five")
    mark.raise_to(path, "survey", 4, "four")
    mark.raise_to(path, "other", 0, "zero")
    assert mark.read(path) == {"survey": (5, "five"), "other": (0, "zero")}
    with pytest.raises(LedgerBroken):
        mark.raise_to(path, "survey", 5, "another five")


def _raise(path: Path, name: str) -> None:
    for n in range(1, 30):
        mark.raise_to(path, name, n, f"{name} {n}")


def test_processes_do_not_lose_each_other_s_marks(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_raise, args=(tmp_path / "mark.json", f"d{i}")) for i in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert mark.read(tmp_path / "mark.json") == {f"d{i}": (29, f"d{i} 29") for i in range(3)}
    assert json.loads((tmp_path / "mark.json").read_text())


def test_a_charge_whose_mark_failed_is_not_answered_before_it_is_marked(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mark.json"
    ledger = Ledger(url, path)
    ledger.open_dataset("survey", epsilon=1)

    def charge() -> Any:
        return ledger.charge("survey", "ada", key="k", question="q", loss=hb.PureDP(0.1))

    with monkeypatch.context() as patch:
        patch.setattr(mark.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "no")))
        for _ in range(2):
            with pytest.raises(LedgerUnavailable):
                charge()
    assert mark.read(path)["survey"][0] == 0
    found = charge()
    assert not found.fresh
    assert mark.read(path)["survey"] == (found.entry.number, found.entry.digest)


def test_a_ledger_put_back_under_a_running_server_is_noticed(url: str, tmp_path: Path) -> None:
    ledger = Ledger(url, tmp_path / "mark.json")
    ledger.open_dataset("survey", epsilon=1)
    entry = ledger.charge("survey", "ada", key="k", question="q", loss=hb.PureDP(0.1)).entry
    mark.raise_to(tmp_path / "mark.json", "survey", 7, "what another copy had come to")
    with pytest.raises(LedgerBroken):
        ledger.charge("survey", "ada", key="k2", question="q", loss=hb.PureDP(0.1))
    with pytest.raises(LedgerBroken):
        ledger.store_answer(entry, "42")
