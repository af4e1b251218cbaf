"""Phrases of a forum: which pairs of words do many people use? What only few write stays unseen.

    python examples/forum_phrases.py DATA [PICTURE]

DATA is the folder that holds reddit_user_ngrams.csv.gz: 98,203 phrases of 3,486 people, 55,421 different ones.
"""

# %% The phrases themselves are private: they are keys, and no list of them is given
import sys
from pathlib import Path
from typing import Any

import hubbub as hb

data = Path(sys.argv[1])
picture = Path(sys.argv[2] if len(sys.argv) > 2 else "forum_phrases.png")
budget = hb.Budget(epsilon=6, delta=1e-5)


def phrases(most: int) -> Any:
    """The table, with so many phrases of each person counted."""
    return hb.protect(
        data / "reddit_user_ngrams.csv.gz",
        unit="user",
        columns={"ngram": "key"},
        budget=budget,
        max_groups=most,
        max_rows=1,
    )


# %% A person may write hundreds of phrases. Few of each person: little noise, but much is thrown away; many: more
# noise. What is best depends on the data, so it is tried here with a part of the budget
for most in (5, 20, 80):
    found = phrases(most).sql("SELECT ngram FROM t GROUP BY ngram", epsilon=1, delta=1e-6)
    print(f"{most:3} phrases of each person: {len(found)} phrases can be told")

# %% The most common phrases, with the number of people who use them
top = phrases(20).sql(
    "SELECT ngram AS phrase, count(*) AS people FROM t GROUP BY ngram ORDER BY people DESC LIMIT 15",
    epsilon=2,
    delta=1e-6,
)
print(top.rounded(), "\n")
top.plot("people").save(picture)
print(f"picture: {picture}\n")
print(budget)
