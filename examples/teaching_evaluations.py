"""Lectures rated by students: 73,421 marks of 2,972 students, none of whom should be found out.

    python examples/teaching_evaluations.py DATA [PICTURE]

DATA is the folder that holds lme4_InstEval.csv.gz (InstEval of the R package lme4).
"""

# %% A student (s) rates many lectures; marks y go from 1 to 5
import sys
from pathlib import Path

import hubbub as hb

data = Path(sys.argv[1])
picture = Path(sys.argv[2] if len(sys.argv) > 2 else "teaching_evaluations.png")
budget = hb.Budget(epsilon=3, delta=1e-5)
columns = {
    "y": (1, 5),
    "dept": list(range(1, 16)),
    "service": [0, 1],
    "studage": [2, 4, 6, 8],
    "d": "key",  # lecturers: people as well, shown only if many students rated them
}
marks = hb.protect(
    data / "lme4_InstEval.csv.gz",
    name="marks",
    unit="s",
    columns=columns,
    budget=budget,
    max_total_rows=30,
)

# %% How good are lectures of each department? Ask first what an answer would be worth
question = "SELECT dept, count(*) AS n, avg(y) AS mark FROM marks GROUP BY dept"
print(marks.explain(question, epsilon=0.5), "\n")
by_department = marks.sql(question, epsilon=0.5)
print(by_department, "\n")
by_department.plot("mark").save(picture)
print(f"picture: {picture}\n")

# %% Service lectures, for students of other departments, against one's own; and the spread of marks
print(marks.group_by("service").agg(mark=hb.mean("y"), spread=hb.stddev("y")).release(epsilon=0.5), "\n")
print(marks.histogram("y", epsilon=0.5), "\n")

# %% The other way round: how much must be paid to know the number of marks within 500?
print(marks.sql("SELECT count(*) AS n FROM marks", error=500), "\n")

# %% Lecturers with the most raters: private keys
lecturers = hb.protect(
    data / "lme4_InstEval.csv.gz", name="marks", unit="s", columns=columns, budget=budget, max_groups=10, max_rows=1
)
print(
    lecturers.sql(
        """SELECT d AS lecturer, count(*) AS students, avg(y) AS mark FROM marks GROUP BY d
           ORDER BY students DESC LIMIT 8""",
        epsilon=1,
        delta=1e-6,
    ),
    "\n",
)
print(budget)
