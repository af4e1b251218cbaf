"""The demo: a small made-up village, the same two questions asked exactly and through hubbub."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hubbub import plots
from hubbub.mechanisms import Laplace, RandomizedResponse

RESIDENTS = 212
FOR_THE_DAM = 97
"""Made up. Everyone in the village votes on building a dam; the register says who arrived when."""


def tell(picture: Path, epsilon: float) -> None:
    """Prints the story and writes the picture."""
    plots.writable(picture)
    console = Console()
    votes = np.zeros(RESIDENTS, np.int64)
    votes[:FOR_THE_DAM] = 1
    with_newcomer = np.append(votes, 1)
    before, after = int(votes.sum()), int(with_newcomer.sum())

    console.rule("[bold]A village votes on a dam. Then Ada moves in, and votes too.")
    console.print("\nEach evening anybody may ask how many have voted for the dam.\n")
    console.print("[bold]1. Exact answers")
    console.print(f"   Monday {before}, Tuesday {after}. Only Ada arrived in between.")
    console.print(f"   {after} - {before} = {after - before}: [red]Ada voted for the dam, and everybody knows.[/]\n")

    count = Laplace(1, epsilon=epsilon)
    console.print(f"[bold]2. The same questions through hubbub[/]   hb.Laplace(1, epsilon={epsilon:g})")
    console.print(f"   Each answer is within {count.error(0.95)} of the truth, 95 times in 100: known beforehand.")
    console.print("   Five villages, the same story in each:")
    table = Table("", "Monday", "Tuesday", "difference", title_justify="left")
    for run in range(1, 6):
        monday, tuesday = count.release(before), count.release(after)
        table.add_row(f"village {run}", str(monday), str(tuesday), f"{tuesday - monday:+d}")
    console.print(table)
    odds = math.exp(count.loss.epsilon())
    console.print(
        "   Only Tuesday's answer counts Ada. Whoever thought her vote a toss-up may\n"
        f"   now be at most [green]{odds / (1 + odds):.0%}[/] sure of it: that is what epsilon = {epsilon:g} means.\n"
    )

    survey = RandomizedResponse(gamma=0.25)
    console.print("[bold]3. Without trusting anybody[/]   hb.RandomizedResponse(gamma=0.25)")
    estimate = survey.estimate(survey.release(with_newcomer))
    console.print("   Everyone gives their true answer with probability 3/4, else the opposite.")
    console.print(
        f"   Estimated share for the dam: {estimate.value:.0%}, between {estimate.low:.0%} and {estimate.high:.0%} "
        f"(95 % sure);\n   the truth is {after / len(with_newcomer):.0%}.\n"
    )

    support, chances = count.distribution(0)
    written = plots.save(
        plots.outcome_chances(
            {
                "Ada against": (before + support, chances),
                "Ada for": (after + support, chances),
            },
            title=f"Tuesday's answer through hubbub (epsilon = {epsilon:g}): hardly different, whichever way Ada voted",
            value="released count",
        ),
        picture,
    )
    console.print(f"The picture is in [bold]{written}[/].")
