"""A census extract: 170,254 persons, one row each, asked by year, age and place.

    python examples/census.py DATA [PICTURE]

DATA is the folder that holds temporal-match2.csv.gz (American Community Survey, coded by NIST) and its domain,
temporal-match2-domain.json, which is public: how many codes every column has.
"""

# %% Every row is a person, so no unit and no bounds on rows are needed; the public domain declares all columns
import json
import sys
from pathlib import Path

import hubbub as hb

data = Path(sys.argv[1])
picture = Path(sys.argv[2] if len(sys.argv) > 2 else "census.png")
sizes = json.loads((data / "temporal-match2-domain.json").read_text())
budget = hb.Budget(epsilon=2)
persons = hb.protect(
    data / "temporal-match2.csv.gz",
    name="persons",
    columns={name: (0, size - 1) for name, size in sizes.items()},
    budget=budget,
)
print(persons, "\n")

# %% People and workers by year
print(
    persons.sql(
        """SELECT YEAR, count(*) AS people, count_if(LABFORCE = 2) AS working, avg(INCTOT) AS income
           FROM persons GROUP BY YEAR ORDER BY YEAR""",
        epsilon=0.5,
    ),
    "\n",
)

# %% An age pyramid: 36 cells, and the price of one count, since a person is in one cell only
pyramid = persons.sql("SELECT SEX, AGE, count(*) AS people FROM persons GROUP BY SEX, AGE", epsilon=0.5)
pyramid.at_least(0).plot("people").save(picture)
print(f"picture: {picture}\n")

# %% Quartiles of income (in codes), all three for one price
print(persons.quantile("INCTOT", [0.25, 0.5, 0.75], epsilon=0.5), "\n")

# %% Two counts in each of 181 places: which have grown the most in the last year? Ordered by released values only
places = persons.sql(
    """SELECT PUMA, count_if(YEAR = 6) - count_if(YEAR = 5) AS growth
       FROM persons GROUP BY PUMA ORDER BY growth DESC LIMIT 5""",
    epsilon=0.5,
)
print(places, "\n")
print(budget)
