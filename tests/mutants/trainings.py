"""Planted bugs of DP-SGD."""

from mutants.bug import Bug

GRADIENTS = ("tests/learning/sgd/test_gradients.py",)
NOISE = ("tests/learning/sgd/test_noise.py",)
BATCHES = ("tests/learning/sgd/test_batches.py",)
PLAN = ("tests/learning/sgd/test_plan.py",)
RUN = ("tests/learning/sgd/test_run.py",)
TOGETHER = ("tests/learning/sgd/test_distributed.py",)
REFUSALS = ("tests/learning/sgd/test_refusals.py",)
LAZY = ("tests/randomness/test_lazy.py",)

BUGS = [
    Bug(
        "biases of linear layers are not measured",
        "learning/sgd/uses.py",
        "            self.bias = _precise(self.g).sum(1)\n            found = found + _square(self.bias)",
        "            self.bias = _precise(self.g).sum(1)",
        GRADIENTS,
    ),
    Bug(
        "places of an example are measured as if they were examples",
        "learning/sgd/uses.py",
        "_longer((x * g).sum((1, 2)), doubt, *traces, ghost=ghost)",
        "_longer((x * g).diagonal(dim1=1, dim2=2).sum(1), doubt, *traces, ghost=ghost)",
        GRADIENTS,
    ),
    Bug(
        "a word that occurs twice is measured as two words",
        "learning/sgd/uses.py",
        "same = self.tokens[:, :, None] == self.tokens[:, None, :]",
        "same = torch.eye(places, dtype=torch.bool, device=g.device)",
        GRADIENTS,
    ),
    Bug(
        "layers that share a parameter are measured apart",
        "learning/sgd/recording.py",
        "        alone = all(times[owner] == 1 for owner in owners)",
        "        alone = True",
        GRADIENTS,
    ),
    Bug(
        "squares vanish",
        "learning/sgd/uses.py",
        "LEAST = 2.0**-100",
        "LEAST = 0.0",
        GRADIENTS,
    ),
    Bug(
        "sums over examples are kept in half precision",
        "learning/sgd/uses.py",
        "    kind = torch.promote_types(torch.promote_types(one.dtype, other.dtype), torch.float32)",
        "    kind = torch.promote_types(one.dtype, other.dtype)",
        GRADIENTS,
    ),
    Bug(
        "what is not finite is summed",
        "learning/sgd/clipping.py",
        "    good = squares.isfinite()",
        "    good = squares == squares",
        GRADIENTS,
    ),
    Bug(
        "rows that only fill a part count",
        "learning/sgd/clipping.py",
        "take = good if taking is None else good & taking",
        "take = good",
        GRADIENTS,
    ),
    Bug(
        "two records become views of one",
        "learning/sgd/run.py",
        "        if self.views == 1:\n            return tensors",
        "        if self.views:\n            return tensors",
        RUN,
    ),
    Bug(
        "parts are clipped after they are summed",
        "learning/sgd/run.py",
        "            found = clipped(tensors, clip=self.clip,",
        "            found = clipped(tensors, clip=self.clip * len(batch.parts),",
        RUN,
    ),
    Bug(
        "sums are divided by the batch that was drawn",
        "learning/sgd/run.py",
        ".div_(self.plan.batch)",
        ".div_(max(1.0, 2 * abs(float(found.within))))",
        RUN,
    ),
    Bug(
        "every worker adds noise of its own",
        "learning/sgd/run.py",
        "        if self._workers > 1:\n            torch.distributed.all_reduce(found.sum)\n",
        "        if self._workers > 1:\n"
        "            found.sum += noisy(found.sum * 0, self.plan.gradient_noise * self.clip, self._bits)\n"
        "            torch.distributed.all_reduce(found.sum)\n",
        TOGETHER,
    ),
    Bug(
        "workers keep their own noise",
        "learning/sgd/run.py",
        "        torch.distributed.broadcast(released, 0)\n        return released",
        "        return released",
        TOGETHER,
    ),
    Bug(
        "noise is scaled by the rate",
        "learning/sgd/run.py",
        "self.plan.gradient_noise * self.clip)",
        "self.plan.gradient_noise * self.clip * self.plan.rate)",
        NOISE,
    ),
    Bug(
        "adaptive clipping pays for no count",
        "learning/sgd/run.py",
        "self._noisy(found.sum, self.plan.gradient_noise",
        "self._noisy(found.sum, self.plan.noise",
        NOISE,
    ),
    Bug(
        "the count has no noise",
        "learning/sgd/run.py",
        "float(self._noisy(above, self.plan.count_noise))",
        "float(above)",
        NOISE,
    ),
    Bug(
        "empty batches do not step",
        "learning/sgd/run.py",
        "        self._count()\n        found =",
        "        self._count()\n        if not batch.parts:\n            return\n        found =",
        NOISE + RUN,
    ),
    Bug(
        "steps are counted after they ran",
        "learning/sgd/run.py",
        "        self._count()\n        found = self._summed(batch, self._clipped)\n",
        "        found = self._summed(batch, self._clipped)\n        self._count()\n",
        RUN,
    ),
    Bug(
        "the budget is charged for a step alone",
        "learning/sgd/run.py",
        "budget.spend(plan.loss,",
        "budget.spend(plan.spent(1),",
        RUN,
    ),
    Bug(
        "a pass begun anew is free",
        "learning/sgd/run.py",
        "self.steps + -self.steps % self.plan.steps_a_pass",
        "self.steps",
        RUN,
    ),
    Bug(
        "the journal tells of steps that are over",
        "learning/sgd/journal.py",
        '"steps": self.steps, "paid"',
        '"steps": step - 1, "paid"',
        RUN,
    ),
    Bug(
        "doubt is ignored",
        "learning/sgd/noise.py",
        "        whole[i] = decided",
        "        del decided",
        NOISE,
    ),
    Bug(
        "nothing is doubtful",
        "learning/sgd/noise.py",
        "for i in doubtful.nonzero().flatten().tolist():",
        "for i in []:",
        NOISE,
    ),
    Bug(
        "no more bits are drawn",
        "randomness/lazy.py",
        "                if below == above:",
        "                if below <= above:",
        LAZY,
    ),
    Bug(
        "both of a pair are the cosine",
        "learning/sgd/noise.py",
        "radius * angle.sin()",
        "radius * angle.cos()",
        NOISE,
    ),
    Bug(
        "BatchNorm is let through",
        "learning/sgd/layers.py",
        "if isinstance(layer, nn.modules.batchnorm._BatchNorm) and not by_instance:",
        "if isinstance(layer, nn.modules.batchnorm._BatchNorm) and by_instance and layer.affine:",
        REFUSALS,
    ),
    Bug(
        "mixing is not looked for",
        "learning/sgd/apart.py",
        "        if not torch.allclose(first[1:], second[1:], rtol=1e-4, atol=1e-6, equal_nan=True):",
        "        if not torch.allclose(first[:0], second[:0]):",
        REFUSALS,
    ),
    Bug(
        "rows of a layer need not be examples",
        "learning/sgd/recording.py",
        "            if isinstance(value, Tensor) and value.shape[:1] != (self.examples * self.views,):",
        "            if False:",
        REFUSALS,
    ),
    Bug(
        "Poisson prices for shuffled batches",
        "learning/sgd/plan.py",
        '        if self.sampling == "shuffled":\n            assert self.rows is not None\n            passes',
        '        if self.sampling == "shuffled" and not self.rows:\n            passes',
        PLAN,
    ),
    Bug(
        "fixed batches move by one clip norm",
        "learning/sgd/plan.py",
        '            return GaussianDP(nudged_up(2 / self.noise), "replace").subsample(',
        '            return GaussianDP(nudged_up(1 / self.noise), "replace").subsample(',
        PLAN,
    ),
    Bug(
        "cut batches are priced as Poisson ones, whatever the cap",
        "learning/sgd/plan.py",
        "        if self.steps * overflow(self.rows or 0, self.rate, self.cap) > RARE:",
        "        if self.steps * overflow(self.rows or 0, self.rate, self.cap) > self.steps:",
        PLAN,
    ),
    Bug(
        "the same people in every step",
        "learning/sgd/batches.py",
        "            found = np.flatnonzero(chance.sample(rows, bits))\n",
        "            found = np.flatnonzero(chance.sample(rows, bits)[: rows // 2].repeat(2))\n",
        BATCHES,
    ),
    Bug(
        "a pass is not shuffled again",
        "learning/sgd/batches.py",
        "            yield permutation(rows, bits)[:size]",
        "            yield np.arange(rows)[:size]",
        BATCHES,
    ),
]
