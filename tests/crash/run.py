"""make crash: kills workers ten thousand times per database, loses power a thousand times; prints what was seen."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import services
from crash.kills import kill_workers
from crash.power import lose_power
from crash.serving import kill_servers
from curator.village import configured

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A kill leaves what was written with the system, and power is lost on a simulated disk: a real one is only slow."""


@contextmanager
def database(kind: str, folder: Path, given: str | None) -> Iterator[str]:
    """The URL of an empty database of this kind."""
    if given is not None:
        yield given
        return
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'ledger.db'}"
        return
    with services.postgres() as where:
        yield f"postgresql+psycopg://{where['user']}@{where['host']}:{where['port']}/{where['database']}"


def main() -> None:
    """Everything asked for, one after the other; an error ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], action="append", default=[])
    parser.add_argument("--url", help="an empty database to use instead of a new one")
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--server-kills", type=int, default=20, help="of PostgreSQL itself")
    parser.add_argument("--losses", type=int, default=0, help="of power, with and without failing syncs (SQLite)")
    parser.add_argument("--servers", type=int, default=0, help="kills of the HTTP server, per database")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    seed = time.time_ns() if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    for kind in options.database if options.kills else ():
        with tempfile.TemporaryDirectory(dir=MEMORY) as name, database(kind, Path(name), options.url) as url:
            begun = time.monotonic()
            tally = kill_workers(
                url,
                options.kills,
                seed,
                mark=Path(name) / "mark.json",
                workers=options.workers,
                server=options.server_kills if kind == "postgres" else 0,
            )
            print(
                f"{kind}: {tally.kills} kills in {time.monotonic() - begun:.0f} s"
                f" (and {tally.server_kills} of the server); told of {len(tally.promises.charged)} charges and"
                f" {len(tally.promises.answered)} answers: 0 lost, 0 twice; {tally.resumed} found again under their"
                f" keys by later workers, {tally.found.resumed} at the end; {len(tally.promises.full)} data sets spent"
                f" to the last; {tally.errors} refusals meanwhile; {tally.found.charges} charges in all",
                flush=True,
            )
    for kind in options.database if options.servers else ():
        with tempfile.TemporaryDirectory(dir=MEMORY) as name, database(kind, Path(name), options.url) as url:
            config = configured(Path(name), server=f'ledger = "{url}"', dataset='version = "1"')
            config.write_text(config.read_text().replace("epsilon = 4.0", "epsilon = 1000.0"))
            begun, servers = time.monotonic(), kill_servers(config, options.servers, seed)
            print(
                f"{kind}: {servers.kills} servers killed in {time.monotonic() - begun:.0f} s; told of"
                f" {len(servers.promises.answered)} answers: 0 lost, 0 twice; {servers.resumed} came from a later"
                f" server under the same key",
                flush=True,
            )
    for failing in (False, True) if options.losses else ():
        with tempfile.TemporaryDirectory(dir=MEMORY) as name:
            begun, done = time.monotonic(), 0
            while done < options.losses:
                seed += 1
                done += lose_power(Path(name) / str(seed), min(250, options.losses - done), seed, failing)
            kind = "with failing syncs and killed servers" if failing else "alone"
            print(f"power lost {done} times, {kind}, in {time.monotonic() - begun:.0f} s: 0 promises lost", flush=True)


if __name__ == "__main__":
    main()
