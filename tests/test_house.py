"""The house itself: who imports whom, what is documented, what stays light."""

import ast
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mutants.bug import Bug
from mutants.run import BUGS

import hubbub

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "hubbub"

MAY_IMPORT = {
    "errors": set(),
    "numeric": {"errors"},
    "randomness": {"numeric", "errors"},
    "privacy": {"numeric", "errors"},
    "mechanisms": {"privacy", "randomness", "numeric", "errors"},
    "domains": {"privacy", "numeric", "errors"},
    "queries": {"mechanisms", "privacy", "domains", "plots", "numeric", "errors"},
    "curator": {"queries", "attacks", "mechanisms", "privacy", "domains", "plots", "numeric", "errors"},
    "learning": {"mechanisms", "privacy", "domains", "randomness", "plots", "numeric", "errors"},
    "plots": {"privacy", "errors"},
    "attacks": {"plots", "errors"},
    "audit": {"mechanisms", "privacy", "randomness", "numeric", "attacks", "plots", "errors"},
    "cli": {"curator", "queries", "domains", "mechanisms", "privacy", "attacks", "audit", "plots", "errors"},
}
"""Upwards and sideways never. The package itself (version, lazy names) may be imported by cli only."""

HEAVY = {
    "duckdb",
    "fastapi",
    "sqlalchemy",
    "ibis",
    "pandas",
    "pyarrow",
    "scipy",
    "sqlglot",
    "altair",
    "typer",
    "rich",
    "sklearn",
    "torch",
    "flwr",
    "ray",
    "vl_convert",
}


def imports(path: Path) -> set[str]:
    """Every module named by an import anywhere in the file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module)
            names |= {f"{node.module}.{a.name}" for a in node.names if node.module == "hubbub"}
    return names


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_import_directions(room: str) -> None:
    files = [SOURCE / f"{room}.py"] if (SOURCE / f"{room}.py").exists() else (SOURCE / room).rglob("*.py")
    for path in files:
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "hubbub" and len(parts) > 1 and parts[1] not in (room, "__version__"):
                assert parts[1] in MAY_IMPORT[room], f"{path.relative_to(ROOT)} imports {name}"


def test_every_room_has_its_rule() -> None:
    rooms = {p.stem for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()} - {"__init__"}
    assert rooms == set(MAY_IMPORT)


def test_randomness_knows_no_epsilon_and_privacy_draws_none() -> None:
    for path in (SOURCE / "randomness").glob("*.py"):
        names = {n.id for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Name)}
        assert "epsilon" not in names, path
    for path in (SOURCE / "privacy").glob("*.py"):
        assert not any("random" in name for name in imports(path)), path


def test_importing_hubbub_loads_nothing_heavy() -> None:
    code = "import sys, hubbub; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & {m.split(".")[0] for m in loaded}
    code = "import sys, hubbub; hubbub.Laplace(1, epsilon=1).release(5); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & {m.split(".")[0] for m in loaded}


def test_no_insecure_randomness_in_the_package() -> None:
    """One exception: the attacker's coins, for public questions and made-up people; nothing that protects uses them."""
    forbidden = re.compile(r"np\.random|numpy\.random|^import random|from random|import secrets", re.MULTILINE)
    coins = SOURCE / "attacks" / "coins.py"
    for path in SOURCE.rglob("*.py"):
        assert path == coins or not forbidden.search(path.read_text()), path
        if "hubbub.attacks.coins" in imports(path):
            assert path.relative_to(SOURCE).parts[:1] == ("attacks",) or path.parent == SOURCE / "cli" / "attack", path


def test_attacks_see_only_what_is_public() -> None:
    """No mechanism, no loss, no secure bits: an attack that needs them would be no attack."""
    for path in (SOURCE / "attacks").rglob("*.py"):
        rooms = {name.split(".")[1] for name in imports(path) if name.startswith("hubbub.")}
        assert rooms <= {"attacks", "plots", "errors"}, path


def test_public_names_exist_and_are_lazy() -> None:
    for name in hubbub.__all__:
        assert getattr(hubbub, name) is not None
        assert name in dir(hubbub)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hubbub.nothing  # noqa: B018


def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages([str(SOURCE)], "hubbub.")]


@pytest.mark.parametrize("name", modules())
def test_public_things_are_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    for label, thing in vars(module).items():
        if label.startswith("_") or getattr(thing, "__module__", None) != name or not callable(thing):
            continue
        assert thing.__doc__, f"{name}.{label}"
        if isinstance(thing, type):
            for method, body in vars(thing).items():
                inherited = any(hasattr(base, method) for base in thing.__mro__[1:])
                if not method.startswith("_") and callable(body) and not inherited:
                    assert body.__doc__, f"{name}.{label}.{method}"


def write_claims():
    spec = importlib.util.spec_from_file_location("write_claims", ROOT / "docs" / "write_claims.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_claims_page_is_current_and_complete() -> None:
    tool = write_claims()
    assert (ROOT / "docs" / "claims.md").read_text() == tool.page(), "run make claims"
    keys = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text(), re.MULTILINE))
    for name, lines in tool.claims():
        assert set(lines) == {"Claim", "Proof", "Assumes"}, name
        cited = set(re.findall(r"\b[A-Z]{1,9}\d{2}\b", lines["Proof"]))
        assert cited <= keys, name


def test_every_mechanism_states_a_claim() -> None:
    claimed = {name.rsplit(".", 1)[1] for name, _ in write_claims().claims()}
    for name, thing in vars(hubbub.mechanisms).items():
        if (
            isinstance(thing, type)
            and issubclass(thing, hubbub.mechanisms.Mechanism)
            and thing is not hubbub.mechanisms.Mechanism
        ):
            assert name in claimed


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_planted_bugs_still_have_their_place(bug: Bug) -> None:
    """make mutants plants them; it can only do so where the fragment occurs exactly once."""
    assert bug.occurrences() == 1
    assert bug.fragment != bug.replacement
    assert all((ROOT / test.split("::")[0]).exists() for test in bug.tests)


def test_enough_bugs_are_planted() -> None:
    assert len(BUGS) >= 40
    assert len({bug.name for bug in BUGS}) == len(BUGS)


def test_files_stay_readable() -> None:
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 450, path


def test_the_tests_named_in_security_md_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text()))
    written = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert named
    assert named <= written
