"""The script that randomises answers: the same reports as hubbub from the same bits, ties included; the exact law."""

from fractions import Fraction

import numpy as np
import pytest
from browser.site import Site
from playwright.sync_api import Page
from support import ScriptedBits, SeededBits, assert_fits, fit_p_value

import hubbub as hb
from hubbub.numeric.enclosure import exp_minus

pytestmark = pytest.mark.xdist_group("browser")

LAWS = [("1", 2), ("0.333333", 2), ("0.001", 3), ("2.5", 5), ("10", 50), ("50", 2), ("0.693147", 4)]
IMPORT = "const r = await import('/static/response.js');"
PLAY = (
    "async ([epsilon, categories, answer, words]) => {"
    + IMPORT
    + """
    let at = 0;
    const next = () => BigInt(words[at++]);
    const coins = r.throwCoins(r.decimal(epsilon), categories, next);
    return [r.report(answer, coins, categories), at];
}"""
)


@pytest.fixture
def script(page: Page, site: Site) -> Page:  # noqa: ARG001
    page.goto("/meaning")
    return page


def threshold(epsilon: str, categories: int, bits: int) -> int:
    """floor(2**bits keep), from far narrower enclosures."""
    low, high = exp_minus(Fraction(epsilon), bits + 200)
    one = 1 << (bits + 200)
    ends = {(one << bits) // (one + (categories - 1) * end) for end in (low, high)}
    assert len(ends) == 1
    return ends.pop()


@pytest.mark.parametrize(("epsilon", "categories"), LAWS)
def test_the_same_words_make_the_same_reports_as_hubbub(script: Page, epsilon: str, categories: int) -> None:
    """At random, and where the first 64, 128 or 192 bits of U are those of the threshold itself, give or take one."""
    mechanism = hb.RandomizedResponse(epsilon=Fraction(epsilon), categories=categories)
    words = SeededBits(categories).words(400).tolist()
    plays = [words[i : i + 40] for i in range(0, 400, 40)]
    shift = [0] if categories > 2 else []
    for bits in (64, 128, 192):
        edge = threshold(epsilon, categories, bits)
        for off in (-1, 0, 1):
            value = min(max(edge + off, 0), (1 << bits) - 1)
            split = [value >> at & (2**64 - 1) for at in range(bits - 64, -1, -64)]
            plays.append([*shift, *split, *words[:20]])
            plays.append([*shift, *split, 0, *words[:20]])
            plays.append([*shift, *split, 2**64 - 1, *words[:20]])
    if categories > 3:  # the first word's highest bits make no option: drawn again
        plays.append([2**64 - 1, 2**64 - 1, *words[:20]])
    for n, play in enumerate(plays):
        answer = n % categories
        bits = ScriptedBits(play)
        wanted = mechanism.release(answer, bits)
        got, read = script.evaluate(PLAY, [epsilon, categories, answer, [str(w) for w in play]])
        assert (got, read) == (wanted, bits.read)


def test_a_tie_is_decided_by_more_bits_of_the_same_number(script: Page) -> None:
    edge = threshold("1", 2, 64)
    more = threshold("1", 2, 128) & (2**64 - 1)
    outcomes = [
        script.evaluate(PLAY, ["1", 2, 1, [str(w) for w in words]])
        for words in ([edge - 1], [edge, more - 1], [edge, more + 1], [edge + 1])
    ]
    assert outcomes == [[1, 1], [1, 2], [0, 2], [0, 1]]


def test_enclosures_hold_and_are_narrow(script: Page) -> None:
    ask = (
        "async ([n, d, k, bits]) => {"
        + IMPORT
        + "return r.keepEnclosure(BigInt(n), BigInt(d), k, BigInt(bits)).map(String);}"
    )
    for epsilon, categories in LAWS:
        exact = Fraction(epsilon)
        for bits in (72, 136, 264):
            arguments = [str(exact.numerator), str(exact.denominator), categories, bits]
            low, high = map(int, script.evaluate(ask, arguments))
            assert low <= threshold(epsilon, categories, bits) < high
            assert high - low <= 4 * categories


@pytest.mark.parametrize(("epsilon", "categories", "answer"), [("1", 2, 1), ("1.5", 4, 2)])
def test_reports_follow_the_law(script: Page, epsilon: str, categories: int, answer: int) -> None:
    """A hundred thousand draws from the browser's own generator; a law five per cent off in epsilon fails."""
    ask = (
        "async ([epsilon, categories, answer, draws]) => {"
        + IMPORT
        + """
        const counts = new Array(categories).fill(0);
        const price = r.decimal(epsilon);
        for (let i = 0; i < draws; i += 1) counts[r.report(answer, r.throwCoins(price, categories), categories)] += 1;
        return counts;
    }"""
    )
    counts = script.evaluate(ask, [epsilon, categories, answer, 100_000])
    reports = np.repeat(np.arange(categories), counts)
    assert len(reports) == 100_000
    support, law = hb.RandomizedResponse(epsilon=Fraction(epsilon), categories=categories).distribution(answer)
    assert_fits(reports, support, law)
    _, wrong = hb.RandomizedResponse(epsilon=Fraction(epsilon) * Fraction(11, 10), categories=categories).distribution(
        answer
    )
    assert fit_p_value(reports, support, wrong) < 1e-6


def test_words_are_used_once_and_fresh(script: Page) -> None:
    ask = "async () => {" + IMPORT + "return Array.from({length: 5000}, () => r.secureWord().toString());}"
    words = script.evaluate(ask) + script.evaluate(ask)
    assert len(set(words)) == len(words)
    ones = sum(int(w).bit_count() for w in words)
    assert abs(ones - 32 * len(words)) < 6.5 * (16 * len(words)) ** 0.5


def test_decimals_are_read_exactly(script: Page) -> None:
    ask = "async (text) => {" + IMPORT + "return r.decimal(text).map(String);}"
    for text in ("1", "0.333333", "10", "0.001", "50"):
        numerator, denominator = map(int, script.evaluate(ask, text))
        assert Fraction(numerator, denominator) == Fraction(text)
