"""``hubbub doctor``: what is installed, what is not, and the command that would change it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from importlib.util import find_spec

import typer

from hubbub import __version__
from hubbub.errors import HubbubError, ParameterError

CORE = ("numpy", "scipy", "cryptography")
EXTRAS: dict[str, tuple[str, ...]] = {
    "cli": ("typer", "rich"),
    "plots": ("altair", "vl_convert"),
    "queries": ("ibis", "duckdb", "pandas", "sqlglot"),
    "postgres": ("ibis", "psycopg"),
    "spark": ("ibis", "pyspark"),
    "server": ("fastapi", "httpx", "jinja2", "psycopg", "python_multipart", "sqlalchemy", "uvicorn"),
    "learn": ("sklearn",),
    "torch": ("torch",),
    "federated": ("flwr", "ray"),
}
"""The modules each extra brings, for what it is named after."""
FOR = {
    "cli": "the hubbub command",
    "plots": "pictures",
    "queries": "questions on tables",
    "postgres": "tables in PostgreSQL",
    "spark": "tables in Spark",
    "server": "the curator and its client",
    "learn": "models",
    "torch": "deep learning",
    "federated": "training on clients",
}
OLDEST = (3, 11)


@dataclass(frozen=True)
class Check:
    """One thing looked at: what it is, whether it is well, what was found, and the remedy if it is not."""

    name: str
    well: bool
    found: str
    remedy: str = ""


def examined(needed: Iterable[str]) -> list[Check]:
    """Every check, in order; extras that are ``needed`` but unknown are refused first."""
    for name in needed:
        if name not in EXTRAS:
            raise ParameterError("need", name, "is no extra", f"these are: {', '.join(EXTRAS)}")
    return [_python(), *(_package(name) for name in CORE), _noise(), *(_extra(name) for name in EXTRAS)]


def _python() -> Check:
    here, oldest = ".".join(map(str, sys.version_info[:3])), ".".join(map(str, OLDEST))
    return Check("python", sys.version_info >= OLDEST, here, f"install Python {oldest} or later")


def _package(name: str) -> Check:
    try:
        import_module(name)
    except ImportError:
        return Check(name, False, "missing", "pip install hubbub")
    return Check(name, True, metadata.version(name))


def _noise() -> Check:
    """A thousand releases of 0 that are neither all 0 nor, but once in 10**80, off by more than 200 times the scale."""
    try:
        from hubbub.mechanisms import Laplace

        drawn = [abs(Laplace(1, epsilon=1).release(0)) for _ in range(1000)]
    except (HubbubError, ImportError, OSError) as failure:
        return Check("noise", False, type(failure).__name__, "the system's random numbers or a package are broken")
    well = 0 < max(drawn) < 200
    return Check("noise", well, "drawn from secure bits" if well else "wrong", "pip install --force-reinstall hubbub")


def _extra(name: str) -> Check:
    missing = [module for module in EXTRAS[name] if find_spec(module) is None]
    if missing:
        return Check(name, False, f"{FOR[name]}: {', '.join(missing)} missing", f"pip install 'hubbub[{name}]'")
    if name == "spark" and shutil.which("java") is None:
        return Check(name, False, f"{FOR[name]}: java is missing", "install a Java runtime, 17 or later")
    return Check(name, True, FOR[name])


def report(checks: list[Check], needed: Iterable[str], *, as_json: bool) -> bool:
    """Prints one line a check, or JSON; whether all that must be well is: the core, and extras that are needed."""
    must = {"python", "noise", *CORE, *needed}
    if as_json:
        typer.echo(json.dumps({"hubbub": __version__, "checks": [asdict(check) for check in checks]}))
    else:
        typer.echo(f"hubbub {__version__}")
        for check in checks:
            mark = "ok     " if check.well else "WRONG  " if check.name in must else "absent "
            typer.echo(f"{mark} {check.name:<13} {check.found}{'' if check.well else f'   ->  {check.remedy}'}")
    return all(check.well for check in checks if check.name in must)
