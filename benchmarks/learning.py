"""Everything that learns, against diffprivlib and scikit-learn without privacy: classifiers, regression, clusters."""

from __future__ import annotations

import classification
import clustering
import regression

if __name__ == "__main__":
    classification.main()
    regression.main()
    clustering.main()
