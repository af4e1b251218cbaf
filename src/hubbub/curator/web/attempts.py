"""A limit on failed sign-ins."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable


class Attempts:
    """Counts failures from each place in a sliding window, in memory only; the longest-known places are forgotten.

    >>> attempts = Attempts(most=2)
    >>> attempts.failed("here"), attempts.allowed("here"), attempts.failed("here"), attempts.allowed("here")
    (None, True, None, False)
    """

    def __init__(
        self, most: int = 10, window: float = 300.0, places: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._window, self._places, self._clock = most, window, places, clock
        self._failures: OrderedDict[str, list[float]] = OrderedDict()
        self._lock = threading.Lock()

    def allowed(self, place: str) -> bool:
        """Whether another attempt may be made now."""
        with self._lock:
            return len(self._recent(place)) < self._most

    def failed(self, place: str) -> None:
        """Notes a failure."""
        with self._lock:
            self._failures[place] = [*self._recent(place), self._clock()][-self._most :]
            self._failures.move_to_end(place)
            while len(self._failures) > self._places:
                self._failures.popitem(last=False)

    def _recent(self, place: str) -> list[float]:
        since = self._clock() - self._window
        return [at for at in self._failures.get(place, []) if at > since]
