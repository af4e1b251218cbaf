"""``hubbub init``, ``owner``, ``backup`` and ``restore``, as somebody types them."""

from pathlib import Path

from curator.village import configured
from typer.testing import CliRunner

from hubbub.cli.app import app
from hubbub.curator import Accounts, Ledger
from hubbub.curator.config import read
from hubbub.privacy import PureDP


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(w) for w in words])
    return result.exit_code, result.output


def test_init_writes_a_configuration_and_never_over_one(tmp_path: Path) -> None:
    configured(tmp_path)
    target = tmp_path / "new.toml"
    code, output = run("init", tmp_path / "village.parquet", "--config", target, "--name", "village")
    assert code == 0, output
    assert "[datasets.village.columns]" in target.read_text()
    code, output = run("init", tmp_path / "village.parquet", "--config", target)
    assert code == 2
    assert "exists already" in output


def test_an_owner_gets_a_new_token_and_the_old_one_ends(tmp_path: Path) -> None:
    path = configured(tmp_path)
    first, second = (run("owner", path)[1].strip() for _ in range(2))
    accounts = Accounts(read(path).server.ledger)
    assert accounts.of_token(first) is None
    found = accounts.of_token(second)
    assert found is not None
    assert found.role == "owner"
    accounts.add("ann", "analyst")
    accounts.close()
    code, output = run("owner", path, "--name", "ann")
    assert code == 2
    assert "analyst's account" in output


def test_backup_and_restore(tmp_path: Path) -> None:
    path, copy = configured(tmp_path), tmp_path / "copy.db"
    url = read(path).server.ledger
    ledger = Ledger(url)
    ledger.open_dataset("village", epsilon=4, delta=1e-5)
    ledger.charge("village", "ann", key="first-key", question="q", loss=PureDP(0.5))
    ledger.close()
    assert run("backup", path, copy)[0] == 0
    code, output = run("backup", path, copy)
    assert code == 2, output
    (tmp_path / "ledger.db").unlink()
    code, output = run("restore", path, copy)
    assert code == 0, output
    again = Ledger(url)
    assert again.verify("village") == 1
    again.close()
    copy.write_bytes(b"not a ledger")
    assert run("restore", path, copy)[0] == 2


def test_a_bad_configuration_is_one_sentence(tmp_path: Path) -> None:
    path = configured(tmp_path)
    path.write_text(path.read_text().replace("epsilon = 4.0", "epsilon = 0"))
    code, output = run("serve", path)
    assert code == 2
    assert "curator.toml, line" in output.replace("\n", "")
