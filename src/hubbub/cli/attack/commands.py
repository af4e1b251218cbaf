"""The attacks and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub import plots
from hubbub.cli.attack import differencing, membership, reconstruction
from hubbub.cli.refusals import refusals

app = typer.Typer(no_args_is_help=True, help="What answers give away: attacks on made-up people.")

Epsilons = Annotated[list[float], typer.Option("--epsilon", help="A total price to try; may be given several times.")]
Seed = Annotated[int, typer.Option(help="Which people are made up and what is asked; noise is fresh.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Picture = Annotated[Path | None, typer.Option("--plot", help="Also draw a picture (.png, .svg, .html).")]


@app.command()
def reconstruct(
    people: Annotated[int | None, typer.Option(help="How many people have a secret bit.")] = None,
    questions: Annotated[float, typer.Option(help="Random questions asked, a person.")] = 5,
    method: Annotated[str, typer.Option(help="least-squares, lp or exhaustive.")] = "least-squares",
    share: Annotated[float, typer.Option(help="The share of people whose bit is 1.")] = 0.5,
    epsilon: Epsilons = [1.0, 10.0, 100.0],  # noqa: B006
    seed: Seed = 0,
    as_json: AsJson = False,
    plot: Picture = None,
) -> None:
    """Everybody's bit from counts of random groups: exact, rounded, small ones withheld, and through hubbub."""
    with refusals():
        if plot:
            plots.writable(plot)
        asked = reconstruction.planned(people, questions, method, share, epsilon, seed)
        reconstruction.report(asked, as_json=as_json, picture=plot)


@app.command()
def difference(
    people: Annotated[int, typer.Option(help="How many people have a secret bit.")] = 200,
    below: Annotated[int, typer.Option(help="Counts below this are withheld by the office that withholds.")] = 5,
    epsilon: Epsilons = [0.5, 1.0, 5.0],  # noqa: B006
    repeats: Annotated[int, typer.Option(help="How often the same two questions are asked, in the last row.")] = 20,
    seed: Seed = 0,
    as_json: AsJson = False,
    plot: Picture = None,
) -> None:
    """One person's bit from two counts: exact, small ones withheld, rounded, and through hubbub."""
    with refusals():
        if plot:
            plots.writable(plot)
        asked = differencing.planned(people, below, epsilon, repeats, seed)
        differencing.report(asked, as_json=as_json, picture=plot)


@app.command(name="membership")
def membership_command(
    against: Annotated[str, typer.Option(help="What was published: means, or a model.")] = "means",
    people: Annotated[int, typer.Option(help="How many people are in the data.")] = 100,
    attributes: Annotated[int | None, typer.Option(help="How many attributes each has.")] = None,
    epsilon: Epsilons = [1.0, 10.0],  # noqa: B006
    delta: Annotated[float, typer.Option(help="The delta that goes with epsilon.")] = 1e-6,
    shadows: Annotated[int, typer.Option(help="Shadow models, against a model.")] = 64,
    seed: Seed = 0,
    as_json: AsJson = False,
    plot: Picture = None,
) -> None:
    """Who was in the data, from its published means (exact, rounded, through hubbub), or from a model trained on it."""
    with refusals():
        if plot:
            plots.writable(plot)
        asked = membership.planned(against, people, attributes, epsilon, delta, shadows, seed)
        membership.report(asked, as_json=as_json, picture=plot)
