"""The reference: one page for each room of the library, made from its public names when the site is built."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

BIBLIOGRAPHY = Path(__file__).resolve().parent / "references.bib"

ROOMS = {
    "hubbub": "everything most people need",
    "hubbub.mechanisms": "noise and choices",
    "hubbub.privacy": "losses and budgets",
    "hubbub.privacy.theorems": "theorems by name",
    "hubbub.privacy.divergences": "how far apart two laws are",
    "hubbub.domains": "what the data may be",
    "hubbub.queries": "questions on tables",
    "hubbub.curator": "the ledger, the server, the client",
    "hubbub.learning": "models",
    "hubbub.learning.sgd": "DP-SGD",
    "hubbub.learning.pate": "teachers who vote",
    "hubbub.learning.federated": "training on clients",
    "hubbub.attacks": "what answers give away",
    "hubbub.audit": "doubting claims",
    "hubbub.plots": "pictures",
    "hubbub.randomness": "secure bits and exact samplers",
    "hubbub.errors": "every exception",
}
"""The rooms and what they are for."""


EXITS = """`hubbub COMMAND --help` says the same. `hubbub --install-completion` makes the shell complete commands.

| exit code | means |
|---|---|
| 0 | done; of `audit`: no claim was refuted; of `doctor`: what must be there is well |
| 1 | of `audit`: a claim was refuted; of `doctor`: something is not well; else a failure |
| 2 | refused, with one sentence on standard error: parameters, files, a budget that does not suffice, a missing extra |

With `--json`, standard output holds one JSON value and nothing else."""


def pages() -> dict[str, str]:
    """File name -> Markdown, of every room and of the command line."""
    found = {f"{room.replace('.', '-')}.md": page(room, words) for room, words in ROOMS.items()}
    found["command-line.md"] = command_line()
    return found


def names(room: str) -> list[str]:
    """The public names of a room: those it lists, else those defined in it."""
    module = importlib.import_module(room)
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [n for n, thing in vars(module).items() if getattr(thing, "__module__", None) == room]
    return sorted((n for n in listed if not n.startswith("_")), key=str.lower)


def page(room: str, words: str) -> str:
    """The page of one room."""
    module = importlib.import_module(room)
    parts = [f"# {room}", f"*{words[0].upper()}{words[1:]}.* {prose(inspect.getdoc(module) or '')}"]
    for name in names(room):
        thing = getattr(module, name)
        if inspect.ismodule(thing):
            parts.append(f"## {name}\n\nA room of its own: `{thing.__name__}`.")
        elif inspect.isclass(thing) or callable(thing):
            parts.append(entry(name, thing))
        else:
            parts.append(f"## {name}\n\nA constant or a type.")
    return "\n\n".join(parts) + "\n"


def entry(name: str, thing: Any) -> str:
    """Heading, signature, docstring, and the methods of a class with their first lines."""
    parts = [f"## {name}", f"```text\n{signature(name, thing)}\n```", prose(inspect.getdoc(thing) or "")]
    if inspect.isclass(thing):
        rows = [method_line(thing, method) for method in methods(thing)]
        if rows:
            parts.append("| | |\n|---|---|\n" + "\n".join(rows))
    return "\n\n".join(part for part in parts if part)


def signature(name: str, thing: Any) -> str:
    """How it is called, on one line if it is short; defaults that nobody could write are three dots."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    given, star = [], False
    for parameter in found.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            given, star = [*given, "*"], True
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        text = mark + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_written(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            shown = repr(parameter.default)
            text += f" = {'...' if shown.startswith('<') else shown}"
        given.append(text)
    back = found.return_annotation
    arrow = "" if back in (found.empty, None, "None") else f" -> {_written(back)}"
    line = f"{name}({', '.join(given)}){arrow}"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(given) + f",\n){arrow}"


def _written(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    return getattr(annotation, "__name__", str(annotation))


def methods(thing: type) -> list[str]:
    """Public methods and properties that hubbub defines."""
    ours = [base for base in thing.__mro__ if base.__module__.startswith("hubbub")]
    found = {n for base in ours for n, value in vars(base).items() if not n.startswith("_") and _is_method(value)}
    return sorted(found)


def _is_method(value: Any) -> bool:
    return callable(value) or isinstance(value, property | classmethod | staticmethod)


def method_line(thing: type, method: str) -> str:
    """One line of a class's table."""
    value = inspect.getattr_static(thing, method)
    doc = (inspect.getdoc(getattr(thing, method)) or "").partition("\n\n")[0].replace("\n", " ")
    words = escaped(doc.replace("``", "`")).replace("|", "\\|")
    shown = method if isinstance(value, property) else signature(method, getattr(thing, method))
    shown = re.sub(r"\s+", " ", shown).replace("( ", "(").replace(",)", ")").replace(", )", ")").partition(" -> ")[0]
    shown = re.sub(r"[(](self|cls)(, )?", "(", shown).replace("|", "\\|")
    return f"| `{shown}` | {words} |"


def prose(doc: str) -> str:
    """A docstring as Markdown: examples fenced, claims as paragraphs, formulas left as they are written."""
    out: list[str] = []
    lines, i = doc.splitlines(), 0
    while i < len(lines):
        if lines[i].startswith(">>>"):
            block = []
            while i < len(lines) and lines[i].strip():
                block.append(lines[i])
                i += 1
            out += ["", "```pycon", *block, "```", ""]
            continue
        line = escaped(lines[i].strip().replace("``", "`"))
        claim = re.match(r"(Claim|Proof|Assumes): (.*)", line)
        out += ["", f"**{claim[1]}**: {claim[2]}"] if claim else [line]
        i += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


def escaped(line: str) -> str:
    """A line of text in which asterisks, underscores and brackets outside code mean themselves."""
    parts = re.split(r"(``[^`]*``|`[^`]*`)", line)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_\[\]])", r"\\\1", part).replace("<", "&lt;") for part in parts
    )


def command_line() -> str:
    """The page of the ``hubbub`` command, from the commands themselves."""
    from typer.main import get_command

    from hubbub.cli.app import app

    parts = [
        "# hubbub, the command",
        EXITS,
    ]

    def walk(command: Any, name: str) -> None:
        inner = getattr(command, "commands", {})
        if not inner or name != "hubbub":
            parts.append(f"## {name}\n\n{(command.help or '').strip()}")
            rows = []
            for given in command.params:
                option = given.param_type_name == "option"
                label = ", ".join(f"`{o}`" for o in given.opts) if option else f"`{given.name.upper()}`"
                words = (getattr(given, "help", None) or "").replace("|", "\\|")
                if given.name != "help":
                    rows.append(f"| {label} | {words} |")
            if rows:
                parts.append("| | |\n|---|---|\n" + "\n".join(rows))
        for word, below in inner.items():
            walk(below, f"{name} {word}")

    walk(get_command(app), "hubbub")
    return "\n\n".join(parts) + "\n"


def references() -> str:
    """The list of papers, from references.bib."""
    parts = ["# References", "Keys are those of the [claims](claims.md).", ""]
    for entry in re.split(r"^@", BIBLIOGRAPHY.read_text(), flags=re.MULTILINE)[1:]:
        key = re.match(r"\w+\{(\w+),", entry)[1]  # type: ignore[index]
        fields = _fields(entry)
        where = fields.get("booktitle") or fields.get("journal") or fields.get("howpublished") or "book"
        title = fields["title"].replace("*", "")
        parts.append(f"- **{key}**: {_people(fields['author'])}, *{title}*. {where}, {fields['year']}.")
    return "\n".join(parts) + "\n"


def _fields(entry: str) -> dict[str, str]:
    """The fields of one entry; braces within a value only keep capitals."""
    found = {}
    for match in re.finditer(r"(\w+)\s*=\s*\{", entry):
        depth, end = 1, match.end()
        while depth and end < len(entry):
            depth += {"{": 1, "}": -1}.get(entry[end], 0)
            end += 1
        found[match[1].lower()] = " ".join(re.sub(r"[{}]", "", entry[match.end() : end - 1]).split())
    return found


def _people(names: str) -> str:
    people = [" ".join(reversed(n.split(", "))) if ", " in n else n for n in names.split(" and ")]
    return " and ".join([", ".join(people[:-1]), people[-1]]) if len(people) > 1 else people[0]
