"""Planted bugs of private k-means."""

from mutants.bug import Bug

KMEANS = ("tests/learning/test_kmeans.py",)

BUGS = [
    Bug(
        "offsets longer than their reach are not shortened",
        "learning/summing.py",
        "(ONE * SLACK / np.maximum(length(offsets, norm), reach[own]))",
        "(ONE * SLACK / reach[own])",
        KMEANS,
    ),
    Bug(
        "lengths are Euclidean under Laplace noise",
        "learning/summing.py",
        "    if norm == 1:\n        return np.asarray(np.abs",
        "    if norm == 0:\n        return np.asarray(np.abs",
        KMEANS,
    ),
    Bug(
        "a replaced row counts as one removed",
        "learning/summing.py",
        'most if self.neighbours == "add-remove" else 2 * most',
        "most",
        KMEANS,
    ),
    Bug(
        "a row replaced within its cluster is forgotten",
        "learning/summing.py",
        "most = max(2 * most, 4 * ONE**2 + 2 * squares**2)",
        "most = 2 * most",
        KMEANS,
    ),
    Bug(
        "the counts are not paid for",
        "learning/summing.py",
        "most = count**2 + ONE**2 + squares**2",
        "most = ONE**2 + squares**2",
        KMEANS,
    ),
    Bug(
        "shares of mu, not of its square",
        "learning/summing.py",
        "self._mu * math.sqrt(share) * SLACK",
        "self._mu * share**0.25 * SLACK",
        KMEANS,
    ),
    Bug(
        "the depth of the tree follows the number of rows",
        "learning/clustering.py",
        "size = self.allowance.counts(SIZE).release(len(points), bits)",
        "self.allowance.counts(SIZE).release(len(points), bits)\n        size = 500 * len(points)",
        KMEANS,
    ),
    Bug(
        "every level of a tree is paid for as one",
        "learning/coresets.py",
        "share * (1 - LAST) / depth, squares=ONE",
        "share * (1 - LAST), squares=ONE",
        KMEANS,
    ),
    Bug(
        "the notes' counts are free",
        "learning/clustering.py",
        "/ (2 * self.rounds)",
        "/ self.rounds",
        KMEANS,
    ),
    Bug(
        "the notes' noise is that of one row removed",
        "learning/clustering.py",
        'moved = 1 if self.neighbours == "add-remove" else 2',
        "moved = 1",
        KMEANS,
    ),
    Bug(
        "looks first, pays then",
        "learning/kmeans.py",
        "        self._charge(method.loss)\n        self._grid = grid\n",
        "        method.centres(grid(rows), grid, clusters, bits)\n"
        "        self._charge(method.loss)\n        self._grid = grid\n",
        KMEANS,
    ),
]
