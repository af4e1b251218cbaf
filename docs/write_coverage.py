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


ASKED = """
# Definitions
D1: neighbours, both relations; databases as histograms
  names: Loss.to_replace domains.neighbouring
  tests: test_the_loss_names_its_relation
D2: randomised algorithms; the exact law of each
  names: Laplace.distribution Exponential.distribution
  tests: test_samples_follow_the_listed_law test_the_exact_law_never_exceeds_its_price
D3: pure, approximate, KL, Rényi, concentrated, Gaussian; the loss as a random quantity
  names: PureDP ApproxDP RenyiDP ZCDP GaussianDP Loss.distribution
  tests: test_readings
D4: divergences and their limits
  names: privacy.divergences.renyi_divergence privacy.theorems.total_variation_bound
  tests: test_limits_of_renyi_divergence test_erratum_total_variation_is_tanh
D5: from prior to posterior
  names: Loss.posterior privacy.theorems.belief_shift_bound plots.posterior
  tests: test_posterior_bound_is_attained test_belief_shift_is_attained_and_not_exceeded
  pages: choosing/budgets.md
D6: what any test must get wrong
  names: Loss.tradeoff Loss.true_positive_rate plots.tradeoff
  tests: test_readings
  pages: reviewer.md
D7: expected utility
  names: Loss.utility_factor
  tests: test_readings
D8: simulation, there and back
  names: privacy.theorems.simulation_from_private privacy.theorems.private_from_simulation
  tests: test_simulation_there_and_back
D9: why not additive privacy alone
  names: attacks.AdditiveCounterexample
  tests: test_the_leak_is_what_listing_every_output_says
D10: expected error, and error at a confidence
  names: Laplace.error Gaussian.expected_error
  tests: test_error_variance_and_expected_error
  pages: analyst.md
D11: from beliefs back to privacy
  names: privacy.theorems.private_from_beliefs
  tests: test_beliefs_give_privacy_back
D12: what is not promised
  names: Loss.group Loss.posterior
  tests: test_readings
  pages: threat-model.md
# Sensitivity
S1: derived from the declared domain and the question
  names: queries.Table.sensitivity protect
  tests: test_no_small_table_moves_more_than_derived
S2: unbounded cases are refused
  names: Number errors.QueryRefused
  tests: test_refused
  pages: choosing/bounds.md
S3: the survey of the books
  names: queries.Table.sensitivity
  tests: test_sensitivities_answer_the_notes_survey
S4: by brute force, to check what is derived
  names: domains.brute_force_sensitivity
  tests: test_no_small_table_moves_more_than_derived
S5: histograms, yes-or-no questions, means
  names: queries.Table.histogram Laplace Gaussian
  tests: test_laplace_vectors_by_exact_enumeration test_no_small_table_moves_more_than_derived
# Mechanisms
M1: Laplace, numbers and vectors
  names: Laplace
  tests: test_laplace_vectors_by_exact_enumeration
M2: truncated Laplace
  names: TruncatedLaplace TruncatedLaplaceDP
  tests: test_truncated_bound_is_the_smallest
M3: Gaussian, analytic and classical
  names: Gaussian Gaussian.classical DiscreteGaussian
  tests: test_the_classical_formula_is_false_at_epsilon_ten
    test_a_discrete_gaussian_at_the_continuous_sigma_misses_its_delta
M4: exponential mechanism
  names: Exponential
  tests: test_utility_bound_holds test_the_notes_worked_example
M5: noisy max, three noises, permute-and-flip
  names: NoisyMax
  tests: test_noise_really_added_gives_the_listed_law test_permute_and_flip_by_brute_force
M6: randomised response
  names: RandomizedResponse RandomizedResponseDP
  tests: test_erratum_gamma_a_quarter_costs_ln_3_and_not_1 test_sample_sizes_of_the_notes
M7: above threshold, top k, quantiles
  names: AboveThreshold TopK Quantile
  tests: test_one_answer_per_session test_top_k test_the_law_on_few_points_is_the_definition
M8: post-processing is free
  names: mechanisms.Mechanism.map queries.Answer.map
  tests: test_an_answer_converts_and_maps_for_free
# Composition
C1: basic composition
  names: compose privacy.theorems.basic_composition
  tests: test_compositions_in_order_of_tightness
C2: advanced and optimal composition
  names: privacy.theorems.advanced_composition privacy.theorems.optimal_composition
  tests: test_compositions_in_order_of_tightness
C3: Rényi, and its conversions
  names: RenyiDP Loss.renyi privacy.theorems.pure_to_renyi
  tests: test_renyi_simple_form_is_looser test_erratum_pure_gives_half_order_epsilon_squared
C4: laws of the loss, certified from both sides
  names: Loss.epsilon_interval SampledGaussian
  tests: test_compositions_in_order_of_tightness
  pages: reviewer.md
C5: groups
  names: Loss.group privacy.theorems.group_privacy
  tests: test_erratum_group_privacy_with_k_delta_is_false
C6: amplification by sampling
  names: Loss.subsample SampledGaussian privacy.theorems.subsampling
  tests: test_subsampling_is_exact_for_randomised_response
  pages: engineer.md
C7: filters and odometers
  names: Budget Budget.odometer privacy.odometer.Odometer
  tests: test_whatever_is_accepted_fits test_it_never_falls_and_is_never_below_the_truth
  pages: choosing/budgets.md
# Questions on tables
T1: counts, sums, means, variances, histograms, by SQL and methods
  names: protect queries.Table.sql count sum mean
  tests: test_sql_and_methods_agree_with_pandas
  pages: questions.md analyst.md
T2: quantiles, minimum, maximum
  names: quantile median min max
  tests: test_the_law_on_many_points_is_the_definition
  pages: questions.md
T3: groups, public and private
  names: Key KeySelection queries.Table.group_by
  tests: test_one_key_alone_is_hidden_but_for_delta
  pages: questions.md analyst.md
T4: most frequent, top k, best price
  names: mode top best_price
  tests: test_voting_and_pricing
T5: a person's many rows; the unit beside each price
  names: protect queries.Receipt
  tests: test_no_small_table_moves_more_than_derived
  pages: choosing/bounds.md
T6: the same integers on every engine
  names: protect
  tests: test_duckdb_and_postgresql_agree test_duckdb_and_spark_agree
  pages: questions.md
T7: error bar and cost, before and after
  names: queries.Table.explain queries.Answer.intervals
  tests: test_intervals_hold_as_often_as_they_say
  pages: index.md
T8: one budget over all analysts, caps
  names: Budget curator.Ledger.cap
  tests: test_the_budget_ends_politely_and_an_owner_sets_caps
  pages: curator.md
T9: a ledger that survives crashes, races, lost power
  names: curator.Ledger curator.restore
  tests: test_killed_workers_lose_nothing test_racing_processes_never_overspend
  pages: curator.md
T10: a server for strangers, and its client
  names: connect curator.Client curator.Curator
  tests: test_lost_connections_are_retried_and_charged_once
  pages: curator.md
T11: a web page for curator and analyst
  names: curator.Curator
  tests: test_pages_hold_no_inline_script_or_style_and_name_no_other_host
  pages: curator.md
T12: surveys that trust nobody
  names: RandomizedResponse
  tests: test_estimates_are_those_of_randomised_response_and_hold
  pages: surveys.md
# Learning
L1: k-means
  names: learning.KMeans
  tests: test_one_row_moves_the_notes_sums_by_2_in_the_l1_ball test_fits_hold_under_replay
  pages: learning.md
L2: risk by the exponential mechanism
  names: learning.PrivateERM
  tests: test_the_notes_constant_is_too_small_where_one_is_replaced
  pages: learning.md
L3: output, objective perturbation
  names: learning.LogisticRegression learning.LinearSVC
  tests: test_minimisers_of_neighbours_are_as_near_as_output_perturbation_says
  pages: learning.md
L4: descent, and DP-SGD for any torch model
  names: learning.descend_privately learning.sgd.Run learning.sgd.Plan
  tests: test_the_price_of_poisson_batches test_parts_are_clipped_one_example_at_a_time
  pages: deep-learning.md
L5: convergence as the theorems say
  names: learning.descend
  tests: test_theorem_12_holds_for_the_average
  pages: learning.md
L6: private predictions against a private model
  names: learning.PrivatePredictor
  tests: test_votes_are_mostly_right_and_each_is_paid_for
  pages: learning.md
L7: teachers who vote
  names: learning.pate.PATE learning.pate.LaplaceMax learning.pate.GaussianMax learning.pate.Confident
  tests: test_laws_of_winners_and_ties test_never_below_the_exact_divergence
  pages: pate.md
L8: federated learning
  names: learning.federated.Central learning.federated.Local learning.federated.Distributed
  tests: test_noise_is_drawn_once_and_has_its_law test_sums_of_shares_are_sums_of_clipped_vectors
  pages: federated.md
# Attacks and audits
A1: differencing
  names: attacks.difference attacks.single_out
  tests: test_thresholds_and_rounding_hide_nobody
A2: reconstruction from all subsets
  names: attacks.reconstruct attacks.AllSubsets
  tests: test_theorem_1_exhaustive_search_is_within_4_errors_always
A3: reconstruction from random subsets
  names: attacks.reconstruct attacks.RandomSubsets
  tests: test_theorem_2_on_random_instances test_the_programs_against_their_primal_forms
A4: the same against hubbub
  names: attacks.attack_curve attacks.released
  tests: test_against_hubbub_at_epsilon_1_no_better_than_guessing_the_majority
A5: membership
  names: attacks.trace attacks.likelihood_ratio_attack
  tests: test_hubbub_keeps_members_within_the_ceiling
A6: audits of black boxes
  names: audit.audit audit.worst_pair
  tests: test_no_shipped_mechanism_is_refuted test_broken_mechanisms_are_caught
  pages: reviewer.md
A7: replays with the noise frozen
  names: audit.replay
  tests: test_private_pipelines_hold test_leaks_are_found
  pages: reviewer.md
"""
"""A part, its rows, and of each its names, tests and pages of the site."""

HEADER = """# What is covered

Generated by `python docs/write_coverage.py`; do not edit. What hubbub was asked to do, by the ids of its
specification, and where each of it is explained, offered and tested. Tests are functions under `tests/`.
"""


def parts() -> dict[str, list[Row]]:
    """Title of a part -> its rows, in order."""
    found: dict[str, list[Row]] = {}
    for title, body in re.findall(r"^# (.*)\n((?:[^#].*\n)*)", ASKED, re.MULTILINE):
        found[title] = [_row(*row) for row in re.findall(r"^(\w+): (.*)\n((?: .*\n)*)", body, re.MULTILINE)]
    return found


def _row(name: str, title: str, body: str) -> Row:
    told = {
        key: " ".join(words.split()) for key, words in re.findall(r"^  (\w+): (.*(?:\n    .*)*)", body, re.MULTILINE)
    }
    return Row(name, title, **told)


def rows() -> list[Row]:
    """All rows in order."""
    return [row for part in parts().values() for row in part]


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
    notes, text = pages(), [HEADER]
    for title, part in parts().items():
        text += [f"## {title}\n", "| | what | pages | names | tests |", "|---|---|---|---|---|"]
        for row in part:
            guides = [(Path(name).stem.replace("-", " "), name) for name in row.pages.split()]
            links = ", ".join(f"[{words}]({link})" for words, link in [*notes[row.id], *guides])
            names = ", ".join(f"`{name}`" for name in row.names.split())
            tests = ", ".join(f"`{name}`" for name in row.tests.split())
            text.append(f"| {row.id} | {row.title} | {links} | {names} | {tests} |")
        text.append("")
    return "\n".join(text)


if __name__ == "__main__":
    (ROOT / "docs" / "coverage.md").write_text(page())
