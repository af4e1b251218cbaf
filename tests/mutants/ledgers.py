"""Planted bugs of the ledger: what would lose, forget or double a charge."""

from mutants.bug import Bug

LEDGER, LIMITS = ("tests/curator/test_ledger.py",), ("tests/curator/test_limits.py",)
MARK, POWER = ("tests/curator/test_mark.py",), ("tests/curator/test_power.py",)
FAULTS, ODOMETER = ("tests/curator/test_faults.py",), ("tests/privacy/test_odometer.py",)

BUGS = [
    Bug("commits are not synced", "curator/store.py", '"synchronous=EXTRA"', '"synchronous=NORMAL"', POWER),
    Bug("a log whose sync failed is trusted", "curator/store.py", '        rewrite(Path(f"{name}-wal"))', "", POWER),
    Bug("writers read before they lock", "curator/store.py", 'else "BEGIN IMMEDIATE")', 'else "BEGIN")', LEDGER),
    Bug("rows are not locked", "curator/store.py", ".with_for_update()", "", LEDGER),
    Bug("what a database says shows", "curator/store.py", ")() from None", ")(str(error))", FAULTS),
    Bug(
        "a lock is waited for for ever",
        "curator/store.py",
        "SET lock_timeout = {milliseconds}",
        "SET lock_timeout = 0",
        LIMITS,
    ),
    Bug(
        "silent clients keep the data set",
        "curator/store.py",
        "SET idle_in_transaction_session_timeout = {milliseconds}",
        "SET idle_in_transaction_session_timeout = 0",
        FAULTS,
    ),
    Bug("any version will do", "curator/store.py", "    if found == VERSION:", "    if found:", LIMITS),
    Bug(
        "a charge found again is not marked",
        "curator/ledger.py",
        "        self._raise_mark(entry)\n        return Charge",
        "        if found is None:\n            self._raise_mark(entry)\n        return Charge",
        MARK,
    ),
    Bug("a rename is not synced", "curator/mark.py", "            os.fsync(folder)", "            pass", MARK),
    Bug("a mark is not synced", "curator/mark.py", "        os.fsync(file)", "        pass", MARK),
    Bug("a mark goes back", "curator/mark.py", "if there[0] < number:", "if there[0] != number:", MARK),
    Bug("a broken mark is none", "curator/mark.py", "        raise LedgerUnavailable from None", "        pass", MARK),
    Bug(
        "answers go to any charge of that number",
        "curator/ledger.py",
        "            if digest_at(connection, entry.dataset, entry.number) != entry.digest:",
        "            if digest_at(connection, entry.dataset, entry.number) is None:",
        LIMITS,
    ),
    Bug(
        "a key is resumed at any price",
        "curator/ledger.py",
        "or not (price or answer is not None):",
        "and price:",
        LIMITS,
    ),
    Bug(
        "a raise forgets what was spent",
        "curator/ledger.py",
        "                raised.add(entry.loss, Fraction(entry.delta))",
        "                pass",
        LIMITS,
    ),
    Bug(
        "caps are not charged",
        "curator/ledger.py",
        "        if len(filters) > 1:",
        "        if len(filters) > 2:",
        LEDGER,
    ),
    Bug(
        "a copy that forgets charges is put back",
        "curator/backup.py",
        "[*marks.items(), *there.items()]",
        "[*marks.items()]",
        LIMITS,
    ),
    Bug("marks are not asked at a restore", "curator/backup.py", "[*marks.items(), *there", "[*there", LIMITS),
    Bug(
        "copies are not verified",
        "curator/backup.py",
        "            checked(connection, row)",
        "            pass",
        LIMITS,
    ),
    Bug(
        "levels take all of delta each",
        "privacy/odometer.py",
        "float_down(delta / 2 / len(levels))",
        "float_down(delta / 2)",
        ODOMETER,
    ),
    Bug(
        "sums take all of delta",
        "privacy/odometer.py",
        "self._sum_delta <= self.delta / 2:",
        "self._sum_delta <= self.delta:",
        ODOMETER,
    ),
    Bug(
        "a first loss keeps its own price",
        "privacy/odometer.py",
        "self._first = loss if self._count == 0 else None",
        "self._first = self._first or loss",
        ODOMETER,
    ),
]
