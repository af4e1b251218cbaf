"""MNIST and Fashion-MNIST by PATE: 250 teachers vote under a budget, a student learns from a few hundred labels.

    python examples/images/pate_images.py --data DATA [--sets mnist] [--splits 1] [--epsilon 1.97] [--jobs 2]

DATA holds the folders mnist and fashion_mnist with the usual idx files, gzipped. The training pictures are private; of
the test pictures, 9,000 are public and without labels, and the student is judged by the other 1,000: a split. Ten
splits hold every test picture back once. One line of JSON for each split, and one for the mean.

Teachers are ridge classifiers of a scattering transform's leading components (fixed wavelets; the components are those
of public pictures), so 240 pictures are enough for 95 %. The student spreads the labels over the public pictures by
their likeness, then trains a small network on what it is surest of, changed at random, a few times over. All prices are
those that hold whatever the votes.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pictures import mnist
from scattering import Scattering
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.semi_supervised import LabelSpreading
from torch import Tensor, nn
from torch.nn import functional

import hubbub as hb
from hubbub.learning.pate import PATE, GaussianMax, most_answers, spread

DELTA = 1e-5
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
COMPONENTS = 200
"""Columns of a row: so many features, then the picture's values."""
HELD_BACK = 1000


def features(pictures: Tensor) -> Tensor:
    """Scattering coefficients, each group of channels brought to mean 0 and variance 1 in every picture alone."""
    made = Scattering(pictures.shape[-1], DEVICE)
    parts = [functional.group_norm(made(part), 9).flatten(1).half().cpu() for part in pictures.split(1000)]
    return torch.cat(parts)


def components(private: Tensor, public: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Both in the leading components of the public ones, scaled to length 1 on average."""
    centre = public.float().mean(0)
    moved = public.float() - centre
    axes = torch.linalg.eigh(moved.T @ moved)[1][:, -COMPONENTS:]
    scale = float((moved @ axes).square().sum(1).mean().sqrt())
    found = [torch.cat([(p.float() - centre) @ axes / scale for p in v.split(4000)]) for v in (private, public)]
    return found[0].numpy(), found[1].numpy()


def leading(rows: np.ndarray) -> np.ndarray:
    """The features of rows."""
    return rows[:, :COMPONENTS]


def changed(pictures: Tensor, mirror: bool) -> Tensor:
    """Turned, sheared, scaled and moved a little at random."""
    n = len(pictures)
    turn, shear, size = (torch.rand(n) - 0.5) * 0.5, (torch.rand(n) - 0.5) * 0.4, 1 + (torch.rand(n) - 0.5) * 0.3
    way = torch.zeros(n, 2, 3)
    way[:, 0, 0], way[:, 0, 1] = size * turn.cos(), shear - turn.sin()
    way[:, 1, 0], way[:, 1, 1] = turn.sin(), size * turn.cos()
    way[:, :, 2] = (torch.rand(n, 2) - 0.5) * 0.2
    if mirror:
        way[:, 0] *= torch.where(torch.rand(n) < 0.5, -1.0, 1.0)[:, None]
    return functional.grid_sample(
        pictures, functional.affine_grid(way, list(pictures.shape), align_corners=False), align_corners=False
    )


def network() -> nn.Sequential:
    """A small network for pictures of 28 * 28."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3),
        nn.Linear(576, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


class PictureStudent(ClassifierMixin, BaseEstimator):
    """Learns from rows most of which are marked -1: labels spread by likeness, then a network on the ``surest`` ones.

    What it says of its rows, changed at random, is believed in the next round; in the last, ``networks`` are trained,
    and their chances averaged.
    """

    def __init__(
        self,
        surest: tuple[float, ...] = (0.75, 0.9, 0.97),
        epochs: int = 10,
        neighbours: int = 10,
        mirror: bool = False,
        networks: int = 3,
    ) -> None:
        self.surest = surest
        self.epochs = epochs
        self.neighbours = neighbours
        self.mirror = mirror
        self.networks = networks

    def fit(self, X: Any, y: Any) -> PictureStudent:  # noqa: N803
        """Trains on features and pictures."""
        likeness = leading(X) / np.sqrt(leading(X).std(axis=0))
        spreading = LabelSpreading(kernel="knn", n_neighbors=self.neighbours, alpha=0.99, max_iter=300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it stops before it has settled
            spreading.fit(likeness, y)
        self.classes_ = spreading.classes_
        chances = torch.as_tensor(np.nan_to_num(spreading.label_distributions_))
        pictures = self._pictures(X)
        for i, share in enumerate(self.surest, 1):
            best = chances.topk(2, dim=1)
            sure = (best.values[:, 0] - best.values[:, 1]).argsort(descending=True)[: int(share * len(pictures))]
            believed = torch.as_tensor(self.classes_)[best.indices[:, 0]]
            several = self.networks if i == len(self.surest) else 1
            self.networks_ = [self._trained(pictures[sure], believed[sure]) for _ in range(several)]
            chances = self._chances(pictures, views=4)[:, torch.as_tensor(self.classes_)]
        return self

    def _trained(self, pictures: Tensor, believed: Tensor) -> nn.Sequential:
        made, size = network().to(DEVICE), 100
        steps = torch.optim.Adam(made.parameters(), lr=2e-3)
        pace = torch.optim.lr_scheduler.OneCycleLR(steps, 4e-3, total_steps=self.epochs * -(-len(pictures) // size))
        for _ in range(self.epochs):
            for part in torch.randperm(len(pictures)).split(size):
                steps.zero_grad()
                seen = changed(pictures[part], self.mirror).to(DEVICE)
                functional.cross_entropy(made(seen), believed[part].to(DEVICE)).backward()
                steps.step()
                pace.step()
        return made.eval()

    def _pictures(self, rows: Any) -> Tensor:
        return torch.as_tensor(np.asarray(rows[:, COMPONENTS:], np.float32)).reshape(-1, 1, 28, 28)

    @torch.no_grad()
    def _chances(self, pictures: Tensor, views: int) -> Tensor:
        """Of every class, averaged over networks and ways to see a picture."""
        seen = [changed(pictures, self.mirror).split(1000) for _ in range(views)]
        found = [torch.cat([n(part.to(DEVICE)).softmax(1).cpu() for part in v]) for v in seen for n in self.networks_]
        return torch.stack(found).mean(0)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The likeliest class of every picture, seen in sixteen ways that are always the same."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self._chances(self._pictures(X), views=16).argmax(1).numpy()


STUDENTS = {
    "mnist": PictureStudent(surest=(0.75, 0.9, 0.97, 1.0), epochs=10),
    "fashion_mnist": PictureStudent(surest=(0.75, 0.9, 0.97), epochs=10, mirror=True),
}


def learn(
    rows: np.ndarray, labels: np.ndarray, others: np.ndarray, truth: np.ndarray, *, student: Any, teachers: int,
    epsilon: float, sigma: float, splits: int, jobs: int, **facts: Any,
) -> None:  # fmt: skip
    """Teaches and judges a student on every split, and says how well it does."""
    aggregator = GaussianMax(sigma)
    answers = most_answers(aggregator, epsilon=epsilon, delta=DELTA)
    order, found = np.random.default_rng(7).permutation(len(others)), []
    for split in range(splits):
        start = time.perf_counter()
        held = order[split * HELD_BACK : (split + 1) * HELD_BACK]
        public = np.setdiff1d(order, held)
        likeness = leading(others[public])
        public = public[spread(likeness / np.sqrt(likeness.std(axis=0)), answers)]
        budget = hb.Budget(epsilon, DELTA)
        model = PATE(
            make_pipeline(FunctionTransformer(leading), RidgeClassifier(alpha=0.1)),
            student,
            teachers=teachers,
            aggregator=aggregator,
            classes=range(10),
            answers=answers,
            unlabelled="given",
            budget=budget,
            jobs=jobs,
        )
        model.fit(rows, labels, others[public])
        right = 100 * np.mean(model.predict(others[held]) == truth[held])
        votes = model.for_owner().votes.counts
        found.append(right)
        line = {
            "split": split, "epsilon": epsilon, "spent": model.loss_.epsilon(DELTA), "delta": DELTA, "answers": answers,
            "student": round(float(right), 2),
            "labels right": round(float(100 * np.mean(model.labels_ == truth[public][:answers])), 2),
            "votes right, private": round(float(100 * np.mean(votes.argmax(1) == truth[public])), 2),
            "owner's epsilon, private": round(model.for_owner().epsilon(DELTA), 3) if not split else None,
            "seconds": round(time.perf_counter() - start, 1),
        }  # fmt: skip
        print(json.dumps(facts | line), flush=True)
    mean = {"summary": True, "epsilon": epsilon, "splits": splits, "mean": round(float(np.mean(found)), 2)}
    print(json.dumps(facts | mean | {"lowest": round(float(min(found)), 2)}), flush=True)


def main() -> None:
    """Reads, prepares and learns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["mnist", "fashion_mnist"])
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=1.97)
    parser.add_argument("--sigma", type=float, default=50)
    parser.add_argument("--teachers", type=int, default=250)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    for name in given.sets:
        start = time.perf_counter()
        data = mnist(given.data / name)
        private, public = components(features(data.x), features(data.judged_x))
        rows, others = (
            np.hstack([part, pictures.flatten(1).numpy()]).astype(np.float32)
            for part, pictures in ((private, data.x), (public, data.judged_x))
        )
        print(json.dumps({"data_set": name, "scattering, seconds": round(time.perf_counter() - start, 1)}), flush=True)
        learn(
            rows, data.y.numpy(), others, data.judged_y.numpy(),
            student=STUDENTS[name], teachers=given.teachers, epsilon=given.epsilon,
            sigma=given.sigma, splits=given.splits, jobs=given.jobs, data_set=name,
        )  # fmt: skip


if __name__ == "__main__":
    main()
