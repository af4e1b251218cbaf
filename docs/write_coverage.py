"""Writes docs/coverage.md: each thing hubbub was asked to do, with its pages, its public names and its tests.

The list is the project's specification, by its ids. A test checks that every page, name and test exists.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / "examples" / "notes"  # its pages name the rows they are about


class Row(NamedTuple):
    """One thing asked for, its public names (dotted from hubbub), tests, and pages besides those of the notes."""

    id: str
    title: str
    names: str
    tests: str
    pages: str = ""


PARTS = {
    "Definitions": (
        Row(
            "D1",
            "neighbours, both relations; databases as histograms",
            "Loss.to_replace domains.neighbouring",
            "test_the_loss_names_its_relation",
        ),
        Row(
            "D2",
            "randomised algorithms; the exact law of each",
            "Laplace.distribution Exponential.distribution",
            "test_samples_follow_the_listed_law test_the_exact_law_never_exceeds_its_price",
        ),
        Row(
            "D3",
            "pure, approximate, KL, Rényi, concentrated, Gaussian; the loss as a random quantity",
            "PureDP ApproxDP RenyiDP ZCDP GaussianDP Loss.distribution",
            "test_readings",
        ),
        Row(
            "D4",
            "divergences and their limits",
            "privacy.divergences.renyi_divergence privacy.theorems.total_variation_bound",
            "test_limits_of_renyi_divergence test_erratum_total_variation_is_tanh",
        ),
        Row(
            "D5",
            "from prior to posterior",
            "Loss.posterior privacy.theorems.belief_shift_bound plots.posterior",
            "test_posterior_bound_is_attained test_belief_shift_is_attained_and_not_exceeded",
            "choosing/budgets.md",
        ),
        Row(
            "D6",
            "what any test must get wrong",
            "Loss.tradeoff Loss.true_positive_rate plots.tradeoff",
            "test_readings",
            "reviewer.md",
        ),
        Row("D7", "expected utility", "Loss.utility_factor", "test_readings"),
        Row(
            "D8",
            "simulation, there and back",
            "privacy.theorems.simulation_from_private privacy.theorems.private_from_simulation",
            "test_simulation_there_and_back",
        ),
        Row(
            "D9",
            "why not additive privacy alone",
            "attacks.AdditiveCounterexample",
            "test_the_leak_is_what_listing_every_output_says",
        ),
        Row(
            "D10",
            "expected error, and error at a confidence",
            "Laplace.error Gaussian.expected_error",
            "test_error_variance_and_expected_error",
            "analyst.md",
        ),
        Row(
            "D11",
            "from beliefs back to privacy",
            "privacy.theorems.private_from_beliefs",
            "test_beliefs_give_privacy_back",
        ),
        Row("D12", "what is not promised", "Loss.group Loss.posterior", "test_readings", "threat-model.md"),
    ),
    "Sensitivity": (
        Row(
            "S1",
            "derived from the declared domain and the question",
            "queries.Table.sensitivity protect",
            "test_no_small_table_moves_more_than_derived",
        ),
        Row("S2", "unbounded cases are refused", "Number errors.QueryRefused", "test_refused", "choosing/bounds.md"),
        Row("S3", "the survey of the books", "queries.Table.sensitivity", "test_sensitivities_answer_the_notes_survey"),
        Row(
            "S4",
            "by brute force, to check what is derived",
            "domains.brute_force_sensitivity",
            "test_no_small_table_moves_more_than_derived",
        ),
        Row(
            "S5",
            "histograms, yes-or-no questions, means",
            "queries.Table.histogram Laplace Gaussian",
            "test_laplace_vectors_by_exact_enumeration test_no_small_table_moves_more_than_derived",
        ),
    ),
    "Mechanisms": (
        Row("M1", "Laplace, numbers and vectors", "Laplace", "test_laplace_vectors_by_exact_enumeration"),
        Row("M2", "truncated Laplace", "TruncatedLaplace TruncatedLaplaceDP", "test_truncated_bound_is_the_smallest"),
        Row(
            "M3",
            "Gaussian, analytic and classical",
            "Gaussian Gaussian.classical DiscreteGaussian",
            "test_the_classical_formula_is_false_at_epsilon_ten "
            "test_a_discrete_gaussian_at_the_continuous_sigma_misses_its_delta",
        ),
        Row("M4", "exponential mechanism", "Exponential", "test_utility_bound_holds test_the_notes_worked_example"),
        Row(
            "M5",
            "noisy max, three noises, permute-and-flip",
            "NoisyMax",
            "test_noise_really_added_gives_the_listed_law test_permute_and_flip_by_brute_force",
        ),
        Row(
            "M6",
            "randomised response",
            "RandomizedResponse RandomizedResponseDP",
            "test_erratum_gamma_a_quarter_costs_ln_3_and_not_1",
        ),
        Row(
            "M7",
            "above threshold, top k, quantiles",
            "AboveThreshold TopK Quantile",
            "test_one_answer_per_session test_top_k test_the_law_on_few_points_is_the_definition",
        ),
        Row(
            "M8",
            "post-processing is free",
            "mechanisms.Mechanism.map queries.Answer.map",
            "test_an_answer_converts_and_maps_for_free",
        ),
    ),
    "Composition": (
        Row(
            "C1",
            "basic composition",
            "compose privacy.theorems.basic_composition",
            "test_compositions_in_order_of_tightness",
        ),
        Row(
            "C2",
            "advanced and optimal composition",
            "privacy.theorems.optimal_composition",
            "test_compositions_in_order_of_tightness",
        ),
        Row(
            "C3",
            "Rényi, and its conversions",
            "RenyiDP Loss.renyi privacy.theorems.pure_to_renyi",
            "test_renyi_simple_form_is_looser test_erratum_pure_gives_half_order_epsilon_squared",
        ),
        Row(
            "C4",
            "laws of the loss, certified from both sides",
            "Loss.epsilon_interval SampledGaussian",
            "test_compositions_in_order_of_tightness",
            "reviewer.md",
        ),
        Row(
            "C5",
            "groups",
            "Loss.group privacy.theorems.group_privacy",
            "test_erratum_group_privacy_with_k_delta_is_false",
        ),
        Row(
            "C6",
            "amplification by sampling",
            "Loss.subsample SampledGaussian privacy.theorems.subsampling",
            "test_subsampling_is_exact_for_randomised_response",
            "engineer.md",
        ),
        Row(
            "C7",
            "filters and odometers",
            "Budget Budget.odometer privacy.odometer.Odometer",
            "test_whatever_is_accepted_fits test_it_never_falls_and_is_never_below_the_truth",
            "choosing/budgets.md",
        ),
    ),
    "Questions on tables": (
        Row(
            "T1",
            "counts, sums, means, variances, histograms, by SQL and methods",
            "protect queries.Table.sql count sum mean",
            "test_sql_and_methods_agree_with_pandas",
            "questions.md analyst.md",
        ),
        Row(
            "T2",
            "quantiles, minimum, maximum",
            "quantile median min max",
            "test_the_law_on_many_points_is_the_definition",
            "questions.md",
        ),
        Row(
            "T3",
            "groups, public and private",
            "Key KeySelection queries.Table.group_by",
            "test_one_key_alone_is_hidden_but_for_delta",
            "questions.md analyst.md",
        ),
        Row("T4", "most frequent, top k, best price", "mode top best_price", "test_voting_and_pricing"),
        Row(
            "T5",
            "a person's many rows; the unit beside each price",
            "protect queries.Receipt",
            "test_no_small_table_moves_more_than_derived",
            "choosing/bounds.md",
        ),
        Row(
            "T6",
            "the same integers on every engine",
            "protect",
            "test_duckdb_and_postgresql_agree test_duckdb_and_spark_agree",
            "questions.md",
        ),
        Row(
            "T7",
            "error bar and cost, before and after",
            "queries.Table.explain queries.Answer.intervals",
            "test_intervals_hold_as_often_as_they_say",
            "index.md",
        ),
        Row(
            "T8",
            "one budget over all analysts, caps",
            "Budget curator.Ledger.cap",
            "test_the_budget_ends_politely_and_an_owner_sets_caps",
            "curator.md",
        ),
        Row(
            "T9",
            "a ledger that survives crashes, races, lost power",
            "curator.Ledger curator.restore",
            "test_killed_workers_lose_nothing test_racing_processes_never_overspend",
            "curator.md",
        ),
        Row(
            "T10",
            "a server for strangers, and its client",
            "connect curator.Client curator.Curator",
            "test_lost_connections_are_retried_and_charged_once",
            "curator.md",
        ),
        Row(
            "T11",
            "a web page for curator and analyst",
            "curator.Curator",
            "test_pages_hold_no_inline_script_or_style_and_name_no_other_host",
            "curator.md",
        ),
        Row(
            "T12",
            "surveys that trust nobody",
            "RandomizedResponse",
            "test_estimates_are_those_of_randomised_response_and_hold",
            "surveys.md",
        ),
    ),
    "Learning": (
        Row(
            "L1",
            "k-means",
            "learning.KMeans",
            "test_one_row_moves_the_notes_sums_by_2_in_the_l1_ball test_fits_hold_under_replay",
            "learning.md",
        ),
        Row(
            "L2",
            "risk by the exponential mechanism",
            "learning.PrivateERM",
            "test_the_notes_constant_is_too_small_where_one_is_replaced",
            "learning.md",
        ),
        Row(
            "L3",
            "output, objective perturbation",
            "learning.LogisticRegression learning.LinearSVC",
            "test_minimisers_of_neighbours_are_as_near_as_output_perturbation_says",
            "learning.md",
        ),
        Row(
            "L4",
            "descent, and DP-SGD for any torch model",
            "learning.descend_privately learning.sgd.Run learning.sgd.Plan",
            "test_the_price_of_poisson_batches test_parts_are_clipped_one_example_at_a_time",
            "deep-learning.md",
        ),
        Row(
            "L5",
            "convergence as the theorems say",
            "learning.descend",
            "test_theorem_12_holds_for_the_average",
            "learning.md",
        ),
        Row(
            "L6",
            "private predictions against a private model",
            "learning.PrivatePredictor",
            "test_votes_are_mostly_right_and_each_is_paid_for",
            "learning.md",
        ),
        Row("L7", "teachers who vote", "NoisyMax GaussianDP", "test_noise_really_added_gives_the_listed_law"),
        Row(
            "L8", "federated learning", "Gaussian RandomizedResponse", "test_estimates_are_unbiased_and_intervals_hold"
        ),
    ),
    "Attacks and audits": (
        Row("A1", "differencing", "attacks.difference attacks.single_out", "test_thresholds_and_rounding_hide_nobody"),
        Row(
            "A2",
            "reconstruction: all subsets",
            "attacks.AllSubsets",
            "test_theorem_1_exhaustive_search_is_within_4_errors_always",
        ),
        Row(
            "A3",
            "reconstruction from random subsets",
            "attacks.reconstruct attacks.RandomSubsets",
            "test_theorem_2_on_random_instances test_the_programs_against_their_primal_forms",
        ),
        Row(
            "A4",
            "the same against hubbub",
            "attacks.attack_curve attacks.released",
            "test_against_hubbub_at_epsilon_1_no_better_than_guessing_the_majority",
        ),
        Row(
            "A5",
            "membership",
            "attacks.trace attacks.likelihood_ratio_attack",
            "test_hubbub_keeps_members_within_the_ceiling",
        ),
        Row(
            "A6",
            "audits of black boxes",
            "audit.audit audit.worst_pair",
            "test_no_shipped_mechanism_is_refuted test_broken_mechanisms_are_caught",
            "reviewer.md",
        ),
        Row(
            "A7",
            "replays with the noise frozen",
            "audit.replay",
            "test_private_pipelines_hold test_leaks_are_found",
            "reviewer.md",
        ),
    ),
}

HEADER = """# What is covered

Generated by `python docs/write_coverage.py`; do not edit. What hubbub was asked to do, by the ids of its
specification, and where each of it is explained, offered and tested. Tests are functions under `tests/`.
"""


def rows() -> list[Row]:
    """All rows in order."""
    return [row for part in PARTS.values() for row in part]


def pages() -> dict[str, list[tuple[str, str]]]:
    """Id -> (title, link) of every page of the notes that says it is about it."""
    found: dict[str, list[tuple[str, str]]] = {row.id: [] for row in rows()}
    for path in sorted(NOTES.rglob("*.md")):
        about = re.search(r"^\*Notes: .* · Rows: (.*)\*$", path.read_text(), re.MULTILINE)
        for row in about[1].split(", ") if about else ():
            found[row].append((path.stem.replace("_", " "), f"notes/{path.relative_to(NOTES)}"))
    return found


def page() -> str:
    """The whole page."""
    notes, parts = pages(), [HEADER]
    for title, part in PARTS.items():
        parts += [f"## {title}\n", "| | what | pages | names | tests |", "|---|---|---|---|---|"]
        for row in part:
            guides = [(Path(name).stem.replace("-", " "), name) for name in row.pages.split()]
            links = ", ".join(f"[{words}]({link})" for words, link in [*notes[row.id], *guides])
            names = ", ".join(f"`{name}`" for name in row.names.split())
            tests = ", ".join(f"`{name}`" for name in row.tests.split())
            parts.append(f"| {row.id} | {row.title} | {links} | {names} | {tests} |")
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    (ROOT / "docs" / "coverage.md").write_text(page())
