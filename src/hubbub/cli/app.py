"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub import __version__, plots
from hubbub.cli import account as accounting
from hubbub.cli import attack, audits, installation, questions, serving, village
from hubbub.cli.refusals import refusals

app = typer.Typer(no_args_is_help=True, help="Private answers about personal data.")
app.add_typer(attack.app, name="attack")


@app.callback(invoke_without_command=True)
def hubbub(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Ask, train, attack and audit personal data under one privacy budget."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def doctor(
    need: Annotated[list[str] | None, typer.Option(help="An extra that must be there; repeat it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """What is installed, and how to get what is not. Fails if the core is not well, or an extra that is needed."""
    with refusals():
        wanted = need or []
        if not installation.report(installation.examined(wanted), wanted, as_json=as_json):
            raise typer.Exit(1)


@app.command()
def demo(
    port: Annotated[int, typer.Option(help="Where the page listens, on this machine only.")] = village.PORT,
    folder: Annotated[Path | None, typer.Option(help="Keep the made-up village and its ledger here.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Also open the page in a browser.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Tell the story and stop.")] = False,
) -> None:
    """A made-up village behind a curator on this machine: what exact answers give away, and what hubbub's do not."""
    with refusals():
        village.tell(port=port, open_page=open_page, folder=folder, stay=not once)


@app.command()
def account(
    rate: Annotated[float, typer.Option(help="The chance that a record takes part in a step.")],
    steps: Annotated[int, typer.Option(help="How many steps are taken.")],
    noise: Annotated[float | None, typer.Option(help="The noise multiplier.")] = None,
    calibrate: Annotated[float | None, typer.Option(help="An epsilon: find the least noise for it instead.")] = None,
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is asked for.")] = 1e-5,
    replace: Annotated[bool, typer.Option("--replace", help="Price replace-one instead of add-remove.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw the price by every method (.png, .svg, .html).")] = None,
) -> None:
    """What a DP-SGD run costs: a certified interval, and what other methods would say."""
    with refusals():
        if plot:
            plots.writable(plot)
        run = accounting.planned(rate, steps, delta, noise, calibrate, "replace" if replace else "add-remove")
        accounting.report(run, as_json=as_json, picture=plot)


Source = Annotated[Path, typer.Argument(help="A .csv or .parquet file.")]
Question = Annotated[str, typer.Argument(help="A SELECT statement; the table is called t.")]
Columns = Annotated[
    list[str], typer.Option("--column", help="NAME=LOW:HIGH, NAME=one,two,three or NAME=key; repeat it.")
]
Unit = Annotated[
    str | None, typer.Option(help="The column that says whose row it is; without it every row is a person.")
]
Epsilon = Annotated[float, typer.Option(help="What the answer may cost.")]
Delta = Annotated[float, typer.Option(help="Needed for private keys; allows Gaussian noise.")]
Groups = Annotated[int, typer.Option(help="How many groups of one person count.")]
Rows = Annotated[int, typer.Option(help="How many rows of one person count in each group.")]


@app.command()
def query(
    source: Source,
    sql: Question,
    epsilon: Epsilon,
    column: Columns,
    unit: Unit = None,
    delta: Delta = 0.0,
    max_groups: Groups = 1,
    max_rows: Rows = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw the answer (.png, .svg, .html).")] = None,
) -> None:
    """A private answer about a file, with its error bars and its price. Each call spends anew: keep count."""
    with refusals():
        if plot:
            plots.writable(plot)
        caps = {"max_groups": max_groups, "max_rows": max_rows}
        table = questions.opened(source, column, unit, caps, epsilon, delta)
        questions.show(questions.ask(table, sql, epsilon, delta), as_json, plot)


@app.command()
def explain(
    source: Source,
    sql: Question,
    epsilon: Epsilon,
    column: Columns,
    unit: Unit = None,
    delta: Delta = 0.0,
    max_groups: Groups = 1,
    max_rows: Rows = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """What a question would cost and how large its error would be. Reads no row and spends nothing."""
    with refusals():
        caps = {"max_groups": max_groups, "max_rows": max_rows}
        table = questions.opened(source, column, unit, caps, epsilon, delta)
        questions.foretell(table.explain(sql, epsilon=epsilon, delta=delta), as_json)


@app.command()
def audit(
    samples: Annotated[int, typer.Option(help="Releases of each of the two inputs.")] = 20_000,
    only: Annotated[str, typer.Option(help="Only mechanisms whose name has these words.")] = "",
    jobs: Annotated[int, typer.Option(help="Audits run side by side, in processes of their own.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw the table (.png, .svg, .html).")] = None,
) -> None:
    """Doubts every shipped mechanism: what it claims, and what its releases prove at least. Fails if one is refuted."""
    with refusals():
        if plot:
            plots.writable(plot)
        if not audits.run(audits.planned(only, samples, jobs), as_json=as_json, picture=plot):
            raise typer.Exit(1)


Config = Annotated[Path, typer.Argument(help="A curator.toml; `hubbub init` writes one.")]


@app.command()
def init(
    source: Source,
    config: Annotated[Path, typer.Option(help="The file to write.")] = Path("curator.toml"),
    name: Annotated[str, typer.Option(help="What the data set is called in questions.")] = "data",
) -> None:
    """Writes a curator's configuration by asking you, from a file's column names and types; no row is looked at."""
    with refusals():
        serving.write_config(source, config, name)


@app.command()
def serve(
    config: Config = Path("curator.toml"),
    workers: Annotated[int, typer.Option(min=1, max=64, help="Server processes on one ledger.")] = 1,
) -> None:
    """Answers untrusted analysts over HTTP, under one budget for all. The first start shows an owner's token."""
    with refusals():
        serving.serve(config, workers)


@app.command()
def owner(
    config: Config = Path("curator.toml"),
    name: Annotated[str, typer.Option(help="The owner's account.")] = "owner",
) -> None:
    """A new token for an owner, for whoever has the ledger's file or password; the old one stops working."""
    with refusals():
        typer.echo(serving.new_owner_token(config, name))


@app.command()
def backup(config: Config, target: Annotated[Path, typer.Argument(help="The file to write.")]) -> None:
    """Copies a SQLite ledger while it is in use, and checks the copy. PostgreSQL has pg_dump for this."""
    with refusals():
        serving.backup(config, target)


@app.command()
def restore(config: Config, source: Annotated[Path, typer.Argument(help="A copy made by hubbub backup.")]) -> None:
    """Puts a copy of the ledger back, if it adds up and is as new as the high-water mark. Stop the server first."""
    with refusals():
        serving.restore(config, source)
