"""Every exception hubbub raises, with its fields.

One shape of sentence: ``name=value`` first, then what is required, then what to do. Errors speak of
parameters, which are public; they never carry a value that went into ``release``.
"""

from __future__ import annotations


class HubbubError(Exception):
    """The root of every error raised on purpose by hubbub."""


class ParameterError(HubbubError, ValueError):
    """A public parameter is outside what its mechanism, law or loss allows.

    >>> str(ParameterError("epsilon", -1, "must be > 0", "smaller positive values mean more privacy"))
    'epsilon=-1 must be > 0; smaller positive values mean more privacy.'
    """

    def __init__(self, name: str, value: object, requirement: str, remedy: str = "") -> None:
        self.name = name
        self.value = value
        self.requirement = requirement
        self.remedy = remedy
        ending = f"; {remedy}." if remedy else "."
        super().__init__(f"{name}={value!r} {requirement}{ending}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.name, self.value, self.requirement, self.remedy)


class ParameterTypeError(ParameterError, TypeError):
    """A public parameter has a type that cannot be used here."""


class DataTypeError(HubbubError, TypeError):
    """What was given to ``release`` has the wrong type or shape. Types and shapes are public; values are not shown."""


class BudgetExceeded(HubbubError):
    """A spend was refused because it would exceed the budget; nothing was spent and nothing ran.

    Fields: ``requested`` and ``spent`` (losses), ``limit`` (epsilon, delta), ``remaining`` (of pure epsilon), and
    ``shortage``, what is said where it is not epsilon that lacks.
    """

    def __init__(
        self, requested: object, spent: object, limit: tuple[float, float], remaining: float, shortage: str = ""
    ) -> None:
        self.requested = requested
        self.spent = spent
        self.limit = limit
        self.remaining = remaining
        self.shortage = shortage
        lacking = f"{remaining:.6g} of epsilon={limit[0]:.6g} is left at delta={limit[1]:.3g}; ask for less"
        super().__init__(f"loss={requested!r} does not fit: {shortage or lacking}, or stop here.")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.requested, self.spent, self.limit, self.remaining, self.shortage)


class SessionClosed(HubbubError, RuntimeError):
    """A one-answer session (a noisy threshold) has given its answer, or left the process that opened it."""


class MissingExtra(HubbubError, ImportError):
    """An optional part of hubbub is not installed; the sentence names the command that installs it.

    >>> str(MissingExtra("plots"))
    "pictures, progress and the like are optional: run  pip install 'hubbub[plots]'  to get 'plots'."
    """

    def __init__(self, extra: str) -> None:
        self.extra = extra
        super().__init__(
            f"pictures, progress and the like are optional: run  pip install 'hubbub[{extra}]'  to get {extra!r}."
        )

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.extra,)


class QueryRefused(HubbubError, ValueError):
    """A question was refused from public facts alone, before anything was spent or read; the sentence says what helps.

    >>> str(QueryRefused("window functions", "use GROUP BY"))
    'window functions: not supported; use GROUP BY.'
    """

    def __init__(self, what: str, remedy: str) -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(f"{what}: not supported; {remedy}.")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.what, self.remedy)


class EngineFailure(HubbubError, RuntimeError):
    """The engine could not compute a question: the same sentence whatever it said, which might tell of rows.

    >>> str(EngineFailure())
    'the engine could not compute this question; what it was charged stays spent.'
    """

    def __init__(self) -> None:
        super().__init__("the engine could not compute this question; what it was charged stays spent.")


class ReleaseFailure(EngineFailure):
    """Noise was drawn, and the answer made of it could not be shown: it must not be drawn again for the same charge."""


class UnknownDataset(HubbubError, KeyError):
    """There is no such data set, or it is not this person's to see: the two look the same."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        super().__init__(f"dataset={dataset!r} is not known here")

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.dataset,)


class KeyReused(HubbubError, ValueError):
    """An idempotency key came back with another question; nothing was charged.

    >>> str(KeyReused("k1"))
    "key='k1' was used for another question; give every question a key of its own."
    """

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"key={key!r} was used for another question; give every question a key of its own.")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.key,)


class LedgerBroken(HubbubError, RuntimeError):
    """A ledger does not add up: an entry was changed, lost or put back. Nothing is answered from it."""

    def __init__(self, dataset: str, number: int) -> None:
        self.dataset = dataset
        self.number = number
        super().__init__(
            f"dataset={dataset!r} has a ledger that does not add up near entry {number}; restore it first."
        )

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.dataset, self.number)


class ConfigError(HubbubError, ValueError):
    """A configuration cannot be used; the sentence names the line and what to write there.

    >>> str(ConfigError("curator.toml", 3, "server.port must be a number > 0", "the default is 8800"))
    'curator.toml, line 3: server.port must be a number > 0; the default is 8800.'
    """

    def __init__(self, path: str, line: int, what: str, remedy: str) -> None:
        self.path = path
        self.line = line
        self.what = what
        self.remedy = remedy
        where = f"{path}, line {line}" if line else path
        super().__init__(f"{where}: {what}{f'; {remedy}' if remedy else ''}.")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.path, self.line, self.what, self.remedy)


class NotSignedIn(HubbubError, PermissionError):
    """No token came, or one that is nobody's, has expired or was revoked: these look the same.

    >>> str(NotSignedIn())
    'sign in with a token that is valid; the owner of the data gives them out.'
    """

    def __init__(self) -> None:
        super().__init__("sign in with a token that is valid; the owner of the data gives them out.")


class NotOwner(HubbubError, PermissionError):
    """An analyst tried what only an owner may.

    >>> str(NotOwner())
    'only an owner may do this; ask one.'
    """

    def __init__(self) -> None:
        super().__init__("only an owner may do this; ask one.")


class UnknownEntry(HubbubError, KeyError):
    """There is no such entry in a ledger, or it is not this person's to see: the two look the same."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"entry {number} is not known here")

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.number,)


class TooManyRequests(HubbubError, RuntimeError):
    """An account has sent more requests than it may in a minute.

    >>> str(TooManyRequests(120))
    'at most 120 requests a minute; wait a little.'
    """

    def __init__(self, a_minute: int) -> None:
        self.a_minute = a_minute
        super().__init__(f"at most {a_minute} requests a minute; wait a little.")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.a_minute,)


class Unavailable(HubbubError, RuntimeError):
    """The curator cannot be reached or cannot answer now. Asking again with the same key is never charged twice."""

    def __init__(self) -> None:
        super().__init__("the curator cannot answer now; ask again, the same key is never charged twice.")


class UnknownSurvey(HubbubError, KeyError):
    """There is no such survey, or it is not this person's to see: the two look the same."""

    def __init__(self) -> None:
        super().__init__("there is no such survey here.")

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), ()


class ReportRefused(HubbubError, ValueError):
    """A submission to a survey was not counted; nothing of it was kept.

    >>> str(ReportRefused("closed"))
    'this survey is closed; nothing was kept.'
    """

    SENTENCES = {
        "malformed": "a submission holds one whole number within its question's options for every question",
        "closed": "this survey is closed",
        "invitation": "this survey needs an invitation code that has not been used yet",
    }

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{self.SENTENCES[reason]}; nothing was kept.")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.reason,)


class LedgerBusy(HubbubError, RuntimeError):
    """Others held the ledger for too long; nothing is known to be charged, and the same key may be sent again.

    >>> str(LedgerBusy())
    'the ledger is busy; send the same question with the same key again in a while.'
    """

    def __init__(self) -> None:
        super().__init__("the ledger is busy; send the same question with the same key again in a while.")


class LedgerUnavailable(HubbubError, RuntimeError):
    """The ledger could not be read or written: the same sentence whatever its database said. Nothing is answered.

    A charge may or may not have been made; the same key again finds it, or makes it, once.

    >>> str(LedgerUnavailable())
    'the ledger cannot be used now; send the same question with the same key again when it can.'
    """

    def __init__(self) -> None:
        super().__init__("the ledger cannot be used now; send the same question with the same key again when it can.")


class FitFailure(HubbubError, RuntimeError):
    """A model could not be fitted; what it was charged stays spent.

    >>> str(FitFailure())
    'the model could not be fitted; what it was charged stays spent.'
    """

    def __init__(self, why: str = "the model could not be fitted") -> None:
        self.why = why
        super().__init__(f"{why}; what it was charged stays spent.")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.why,)
