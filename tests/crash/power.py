"""Loss of power at random moments: what was not synced is dropped, kept in part or torn; the ledger opens again."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from crash.checks import Promises, check
from curator.faults import CODES, Disk, Image, coins, faulty, rebuild, url

import hubbub as hb
from hubbub.curator import Ledger, store
from hubbub.errors import LedgerBusy, LedgerUnavailable, ParameterError


@dataclass
class Moment:
    """The disk at one moment, and what had been promised by then."""

    images: dict[str, Image]
    promises: Promises


@dataclass
class World:
    """One server on one disk, in a folder that changes when it crashes."""

    folder: Path
    label: str
    disk: Disk
    generator: random.Random
    promises: Promises = field(default_factory=Promises)
    moments: list[Moment] = field(default_factory=list)
    keys: int = 0
    open: list[Ledger] = field(default_factory=list)

    def start(self) -> Ledger:
        """Opens the ledger, with a log that is copied into the file now and then."""
        ledger = Ledger(url(self.folder / "ledger.db", self.label))
        self.open.append(ledger)
        with ledger._store.raw() as connection:
            connection.execute(f"PRAGMA wal_autocheckpoint={self.generator.choice([1, 10, 50, 1000])}").close()
        return ledger

    def crash(self) -> None:
        """The server is killed: the next finds the files as the system shows them, synced or not."""
        new = self.folder.parent / f"{self.folder.name}x"
        new.mkdir()
        for name in ("ledger.db", "ledger.db-wal"):
            if (self.folder / name).exists():
                shutil.copy(self.folder / name, new / name)
                self.disk.images[str(new / name)] = self.disk.images[str(self.folder / name)].copy()
        old = self.folder
        self.folder = new
        while self.open:
            self.open.pop().close()
        self.disk.images = {path: image for path, image in self.disk.images.items() if not path.startswith(f"{old}/")}


def _through(disk: Disk, failing: Callable[[], bool]) -> Callable[[Path], None]:
    """The one write that does not go through SQLite, seen by the disk."""

    really = store.rewrite

    def rewrite(path: Path) -> None:
        image = disk.images.get(str(path))
        if image is not None:
            if failing():
                raise OSError
            image.pending.clear()
            image.durable = bytearray(path.read_bytes())
        really(path)

    return rewrite


def lose_power(folder: Path, losses: int, seed: int, failing: bool = False) -> int:
    """Charges, answers, restarts and loses power so often; every promise holds each time. The number of moments.

    With ``failing``, syncs fail now and then, what they did not write is forgotten though it can still be read, and
    the server is killed as well.
    """
    generator, done = random.Random(seed), 0
    with (
        faulty() as (label, disk),
        mock.patch.object(
            store, "rewrite", _through(disk, lambda: disk.lies_after_failure and generator.random() < 0.05)
        ),
    ):
        begun = folder / "disk"
        begun.mkdir(parents=True)
        world = World(begun, label, disk, generator)
        with closing(world.start()) as first:
            first.open_dataset("survey", epsilon=10_000, delta=1e-6)
        world.promises.opened.add("survey")
        disk.lies_after_failure = failing
        if failing:
            disk.fail = lambda _, name: CODES["EIO"] if name == "sync" and generator.random() < 0.05 else 0

        def remembered(_: int) -> None:
            if generator.random() < 0.03:
                world.moments.append(Moment(disk.snapshot(), world.promises.copy()))

        disk.before = remembered
        ledger = None
        while done < losses:
            try:
                ledger = ledger or world.start()
                _work(world, ledger)
                ledger = _restarted(world, ledger)
            except (LedgerBusy, LedgerUnavailable):
                if generator.random() < 0.5:
                    world.crash()
                    ledger = None
            for moment in world.moments:
                after = folder / f"after {done}"
                after.mkdir()
                rebuild(moment.images, after, coins(generator.getrandbits(64)))
                check(f"sqlite:///{after / 'ledger.db'}", moment.promises, resume=True)
                shutil.rmtree(after)
                done += 1
            world.moments.clear()
        disk.before, disk.fail = lambda _: None, lambda _number, _name: 0
        while world.open:
            world.open.pop().close()
    return done


def _work(world: World, ledger: Ledger) -> None:
    """One question with its answer; the owner at work now and then; the key of one that failed is used again."""
    chance = world.generator.random()
    if chance < 0.05:
        ledger.cap("survey", "ada", epsilon=1000 + world.keys)
    elif chance < 0.1:
        with suppress(ParameterError):  # one that failed may have been made
            ledger.raise_limit("survey", epsilon=20_000 + world.keys)
    key = f"k{world.keys}"
    charge = ledger.charge("survey", "ada", key=key, question=key, loss=hb.PureDP(0.01))
    world.promises.charged["survey", "ada", key] = charge.entry.digest
    if world.generator.random() < 0.9:
        world.promises.answered["survey", "ada", key] = ledger.store_answer(charge.entry, f"answer to {key}")
    world.keys += 1


def _restarted(world: World, ledger: Ledger) -> Ledger | None:
    chance = world.generator.random()
    if chance < 0.04:
        ledger.close()
        world.open.remove(ledger)
        return None
    if chance < 0.08:
        world.crash()
        return None
    return ledger
