"""Chance of a teacher's own: no teacher's training depends on how much chance another used up."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.utils import check_random_state

_ALONE = threading.Lock()


@contextmanager
def own_chance(seed: int) -> Iterator[None]:
    """Python's, numpy's and (where it is loaded) torch's generators start from ``seed``, and are put back afterwards.

    Claim: what a block draws from them depends on its seed alone.
    Proof: all three are set first, and threads wait for each other. A generator shared between teachers would not do:
        one row more makes one teacher draw more, and moves everything the teachers after it draw.
    Assumes: no other source of chance is shared, and nothing else draws from these at the same time.
    """
    with _ALONE:
        plain, shared = sys.modules["random"], check_random_state(None)
        kept, kept_shared = plain.getstate(), shared.get_state()
        torch = sys.modules.get("torch")
        kept_torch = torch.get_rng_state() if torch else None
        try:
            plain.seed(seed)
            shared.seed(seed)
            if torch:
                torch.manual_seed(seed)
            yield
        finally:
            plain.setstate(kept)
            shared.set_state(kept_shared)
            now = sys.modules.get("torch")  # the block may have been the first to load it
            if torch:
                torch.set_rng_state(kept_torch)
            elif now:
                now.seed()
            if now and now.cuda.is_initialized():  # set with the others, not kept: fresh, of no teacher's chance
                now.cuda.seed_all()


def seeded(model: Any, seed: int) -> Any:
    """The model, its every open ``random_state`` set."""
    if not hasattr(model, "get_params"):
        return model
    open_ones = [n for n, v in model.get_params(deep=True).items() if n.endswith("random_state") and v is None]
    return model.set_params(**dict.fromkeys(open_ones, seed)) if open_ones else model
