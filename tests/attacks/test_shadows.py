"""The likelihood-ratio attack on scikit-learn's classifiers, and on one that knows nothing."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from hubbub.attacks import Membership, likelihood_ratio_attack
from hubbub.attacks.shadows import confidence
from hubbub.errors import ParameterError

RNG = np.random.default_rng(0)
RECORDS = RNG.normal(size=(240, 20))
LABELS = (RECORDS[:, 0] + RNG.normal(size=240) > 0).astype(int) + (RECORDS[:, 1] > 1)
NAMES = np.array(["none", "some", "many"])[LABELS]
MEMBER = np.arange(120) % 2 == 0  # of the first 120, who are suspects; the rest is background
SUSPECTS, BACKGROUND = slice(0, 120), slice(120, 240)


def attacked(model, *, predict=None, names: np.ndarray = LABELS, **options) -> Membership:
    from copy import deepcopy

    target = deepcopy(model).fit(RECORDS[SUSPECTS][MEMBER], names[SUSPECTS][MEMBER])
    answering = target.predict_proba if predict is None else predict(target)
    scores = likelihood_ratio_attack(
        answering,
        model,
        RECORDS[SUSPECTS],
        names[SUSPECTS],
        background=(RECORDS[BACKGROUND], names[BACKGROUND]),
        **({"shadows": 32} | options),
    )
    return Membership(scores[MEMBER], scores[~MEMBER])


FOREST = RandomForestClassifier(n_estimators=10, random_state=1)
LOGISTIC = LogisticRegression(C=10.0)


@pytest.mark.parametrize("variant", ["online", "offline"])
def test_a_forest_remembers_its_training_data(variant: str) -> None:
    report = attacked(FOREST, variant=variant)
    assert report.auc > 0.8
    assert report.advantage > 0.5
    assert report.true_positive_rate(0.05) > 0.2


def test_an_overfitted_regression_is_seen_through() -> None:
    assert attacked(LOGISTIC, shadows=16).auc > 0.65
    assert attacked(GaussianNB(), shadows=16).auc > 0.55


def test_labels_may_have_names() -> None:
    assert attacked(FOREST, names=NAMES, shadows=8).auc > 0.8


@pytest.mark.parametrize("variant", ["online", "offline"])
def test_a_model_that_learns_nothing_gives_nobody_away(variant: str) -> None:
    report = attacked(DummyClassifier(strategy="uniform", random_state=1), variant=variant)
    assert report.auc == 0.5
    assert report.advantage == 0


def test_whoever_answers_may_be_any_callable() -> None:
    """Only labels, without confidence: much less is learnt."""

    def labels_only(target):
        return lambda records: (
            np.eye(3)[target.predict(records)] * 0.98 + 0.01 - np.eye(3)[target.predict(records)] * 0.01
        )

    assert attacked(FOREST, predict=labels_only, shadows=16).auc < attacked(FOREST, shadows=16).auc


def test_each_shadow_is_counted_and_the_model_given_stays_untrained() -> None:
    seen: list[int] = []
    model = GaussianNB()
    attacked(model, shadows=6, each=lambda: seen.append(1))
    assert len(seen) == 6
    assert not hasattr(model, "classes_")


def test_confidence_is_the_log_odds_of_the_own_label() -> None:
    labels, classes = np.array(["b", "a", "b"]), np.array(["a", "b"])
    odds = confidence([[0.2, 0.8], [0.2, 0.8], [0.0, 1.0]], labels, classes)
    assert odds[:2].tolist() == pytest.approx([np.log(4), -np.log(4)])
    assert odds[2] == pytest.approx(np.log(1e4))
    absent = confidence([[1.0]], np.array(["b"]), np.array(["a"]))  # a shadow that never saw the label
    assert absent[0] == pytest.approx(-np.log(1e4))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variant": "sideways"}, "variant='sideways' must be one of"),
        ({"shadows": 3}, "shadows=3 must be even"),
        ({"sure": 0.5}, "sure=0.5 must lie strictly between"),
        ({"variant": "offline"}, "background=None must be given"),
        ({"labels": [0]}, "must be one for every record"),
        ({"predict": lambda records: np.ones((len(records), 5))}, "must give probabilities of shape"),
    ],
)
def test_what_cannot_be_attacked_is_refused(options: dict, words: str) -> None:
    target = GaussianNB().fit(RECORDS, LABELS)
    given = {"predict": target.predict_proba, "model": GaussianNB(), "records": RECORDS, "labels": LABELS, "shadows": 4}
    with pytest.raises(ParameterError, match=words):
        likelihood_ratio_attack(**(given | options))
