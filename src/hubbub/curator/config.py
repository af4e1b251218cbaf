"""The curator's configuration: one TOML file, checked as a whole before anything is opened; errors name the line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hubbub.domains.columns import Category, Key, Moment, Number, column
from hubbub.domains.schema import Schema
from hubbub.errors import ConfigError, HubbubError, ParameterError
from hubbub.numeric.rational import positive
from hubbub.privacy.loss import check_delta

_FORMS = 'write [low, high], a list of categories, "key", or a table of low, high, step, nullable or categories'
ENGINES = ("source", "duckdb", "postgres", "spark")


@dataclass(frozen=True)
class Server:
    """How the server listens and what it lets through."""

    ledger: str
    high_water_mark: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8800
    answer_every: float = 0.5
    """Seconds. Answers leave at multiples of this after their question came, so that time tells little."""
    timeout: float = 60.0
    """Seconds a question may take in the engine. What it was charged stays spent."""
    largest_request: int = 65_536
    """Bytes."""
    requests_per_minute: int = 120
    """Of one account; of one address, ten times as many."""
    open_pages: bool = True
    """Whether the web pages are served beside the API."""


@dataclass(frozen=True)
class Dataset:
    """A data set: where it is, what is publicly known of it, and what all analysts together may learn of it."""

    name: str
    schema: Schema
    epsilon: Any
    delta: Any
    origin: Mapping[str, str]
    public: Mapping[str, Path] = field(default_factory=dict)
    version: str = "1"
    """Of the data. Change it when they change: stored answers are for one version."""
    title: str = ""
    description: str = ""
    caps: Mapping[str, Any] = field(default_factory=dict)
    """What a new grantee may spend of it: epsilon and delta; nothing said: up to the limit of all."""


@dataclass(frozen=True)
class Config:
    """A whole configuration."""

    path: Path
    server: Server
    datasets: Mapping[str, Dataset]


def read(path: str | Path) -> Config:
    """The configuration in a file, or ConfigError with the line that is wrong and what to write instead."""
    where = Path(path)
    try:
        text = where.read_text()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(str(where), 0, "cannot be read", "`hubbub init` writes one") from None
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        line = re.search(r"line (\d+)", str(problem))
        raise ConfigError(
            str(where), int(line[1]) if line else 0, str(problem).split(" (at")[0], "see toml.io"
        ) from None
    return _Reader(where, text).config(told)


class _Reader:
    """Turns what was told into a Config, and says where it was told."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text

    def config(self, told: Mapping[str, Any]) -> Config:
        self._only(told, (), {"server", "datasets"})
        server = self._server(self._table(told, ("server",), {}))
        listed = self._table(told, ("datasets",), {})
        if not listed:
            self._fail(("datasets",), "is missing", "declare at least one data set: [datasets.NAME]")
        datasets = {name: self._dataset(name, self._table(listed, ("datasets", name))) for name in listed}
        return Config(self._path, server, MappingProxyType(datasets))

    def _server(self, told: Mapping[str, Any]) -> Server:
        fields = Server.__dataclass_fields__
        self._only(told, ("server",), set(fields))
        given = {"ledger": f"sqlite:///{self._beside('ledger.db')}", **told}
        for name in ("answer_every", "timeout", "largest_request", "requests_per_minute", "port"):
            whole = fields[name].type == "int"
            value = given.get(name, 1)
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not value > 0:
                self._fail(("server", name), "must be a number > 0", f"the default is {fields[name].default}")
        for name in ("ledger", "host"):
            if not isinstance(given.get(name, ""), str):
                self._fail(("server", name), "must be a text", f'such as "{fields["host"].default}"')
        if not isinstance(given.get("open_pages", True), bool):
            self._fail(("server", "open_pages"), "must be true or false", "the default is true")
        given["ledger"] = self._secret(("server", "ledger"), given["ledger"])
        if given["ledger"].startswith("sqlite:///") and not given["ledger"].startswith("sqlite:////"):
            given["ledger"] = f"sqlite:///{self._beside(given['ledger'].removeprefix('sqlite:///'))}"
        mark = given.get("high_water_mark")
        if mark is not None:
            given["high_water_mark"] = self._beside(mark)
        return Server(**given)

    def _dataset(self, name: str, told: Mapping[str, Any]) -> Dataset:
        at = ("datasets", name)
        known = {"unit", "columns", "epsilon", "delta", "neighbours", "max_groups", "max_rows", "max_total_rows"}
        known |= {"public", "version", "title", "description", "table", "path", "caps", *ENGINES}
        self._only(told, at, known)
        if "columns" not in told:
            self._fail(at, "declares no columns", f"add [datasets.{name}.columns] with bounds or categories")
        if "epsilon" not in told:
            self._fail(at, "has no limit", "add epsilon = 1.0, what all analysts together may spend")
        columns = {
            c: self._checked((*at, "columns", c), partial(_column, c, spec))
            for c, spec in self._table(told, (*at, "columns")).items()
        }
        self._checked((*at, "epsilon"), lambda: positive("epsilon", told["epsilon"]))
        self._checked((*at, "delta"), lambda: check_delta(told.get("delta", 0.0)))
        caps = self._table(told, (*at, "caps"), {})
        self._only(caps, (*at, "caps"), {"epsilon", "delta"})
        if caps:
            self._checked((*at, "caps"), lambda: positive("epsilon", caps.get("epsilon")))
        bounds = {k: told[k] for k in ("max_groups", "max_rows", "max_total_rows", "neighbours") if k in told}
        schema = self._checked(at, lambda: Schema.declare(name, told.get("unit"), columns, **bounds))
        public = {n: self._existing((*at, "public", n), f) for n, f in self._table(told, (*at, "public"), {}).items()}
        return Dataset(
            name=name,
            schema=schema,
            epsilon=told["epsilon"],
            delta=told.get("delta", 0.0),
            origin=self._origin(at, told),
            public=public,
            version=str(told.get("version", "1")),
            title=str(told.get("title", name)),
            description=str(told.get("description", "")),
            caps=caps,
        )

    def _origin(self, at: tuple[str, ...], told: Mapping[str, Any]) -> dict[str, str]:
        """Which engine, and which table or file of it."""
        engines = [e for e in ENGINES if e in told]
        if len(engines) != 1:
            self._fail(at, "must say where its rows are, once", f"give one of {', '.join(ENGINES)}")
        engine = engines[0]
        place = self._secret((*at, engine), told[engine])
        if engine in ("source", "duckdb"):
            place = str(self._existing((*at, engine), place))
        if engine == "source":
            return {"engine": engine, "place": place}
        inside = "table" if engine != "spark" or "table" in told else "path"
        if not isinstance(told.get(inside), str):
            self._fail(at, f"names no table of {engine}", 'add table = "name"')
        told_place = told[inside] if inside == "table" else str(self._existing((*at, "path"), told["path"]))
        return {"engine": engine, "place": place, inside: told_place}

    def _existing(self, at: tuple[str, ...], path: Any) -> Path:
        if not isinstance(path, str) or not self._beside(path).exists():
            self._fail(at, "is not a file that exists", "paths are relative to this file")
        return self._beside(path)

    def _beside(self, path: str) -> Path:
        return (self._path.parent / path).resolve()

    def _secret(self, at: tuple[str, ...], value: Any) -> str:
        """A text, or what an environment variable holds: "$NAME", so that passwords need not be in the file."""
        if not isinstance(value, str) or not value:
            self._fail(at, "must be a text", "such as a path or a URL")
        if value.startswith("$"):
            if value[1:] not in os.environ:
                self._fail(at, f"names the environment variable {value[1:]}, which is not set", "set it")
            return os.environ[value[1:]]
        return str(value)

    def _table(self, told: Mapping[str, Any], at: tuple[str, ...], default: Any = None) -> Mapping[str, Any]:
        found = told.get(at[-1], default)
        if not isinstance(found, dict):
            self._fail(at, "must be a table", f"write [{'.'.join(at)}]")
        return MappingProxyType(found)

    def _only(self, told: Mapping[str, Any], at: tuple[str, ...], known: set[str]) -> None:
        for name in told:
            if name not in known:
                self._fail((*at, name), "is not known here", f"known are {', '.join(sorted(known))}")

    def _checked(self, at: tuple[str, ...], make: Callable[[], Any]) -> Any:
        try:
            return make()
        except HubbubError as problem:
            self._fail(at, str(problem).rstrip("."), "")

    def _fail(self, at: tuple[str, ...], what: str, remedy: str) -> Any:
        raise ConfigError(str(self._path), _line(self._text, at), f"{'.'.join(at)} {what}", remedy)


def _column(name: str, spec: Any) -> Any:
    """A column as TOML tells it: [low, high], ["a", "b"], "key", or a table with low and high or categories."""
    if isinstance(spec, dict):
        rest = {k: v for k, v in spec.items() if k != "categories"}
        if "categories" in spec:
            return Category(tuple(spec["categories"]), **rest)
        if set(rest) <= {"key", "nullable"}:
            return Key(rest.get("nullable", True))
        if not {"low", "high"} <= set(rest) <= {"low", "high", "step", "nullable"}:
            raise ParameterError("columns", name, "is not declared in a known form", _FORMS)
        if not isinstance(rest["low"], int | float):
            return Moment(**rest)
        return Number(**rest)
    if isinstance(spec, list) and len(spec) == 2 and not any(isinstance(v, str | bool) for v in spec):
        return column(name, tuple(spec))
    return column(name, spec)


def _line(text: str, at: tuple[str, ...]) -> int:
    """The line on which something is said, or the nearest table around it; 0 if none of it is there.

    >>> _line('[datasets.a]\\nunit = "x"\\n[datasets.a.columns]\\nage = 3\\n', ("datasets", "a", "columns", "age"))
    4
    """
    inside: tuple[str, ...] = ()
    best, depth = 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        if header:
            inside = _words(header[1])
            here = inside
        else:
            key = re.match(r"\s*([A-Za-z0-9_.\"'-]+)\s*=", line)
            if not key:
                continue
            here = inside + _words(key[1])
        if here == at[: len(here)] and len(here) > depth:
            best, depth = number, len(here)
    return best


def _words(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
