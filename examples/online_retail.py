"""A shop's invoices: half a million lines of 4,372 customers, asked about revenue without telling on any customer.

    python examples/online_retail.py DATA [PICTURE]

DATA is the folder that holds online_retail.csv.gz (the UCI table Online Retail).
"""

# %% What is declared: whose lines they are, and what may be asked of them
import datetime as dt
import sys
from pathlib import Path

import hubbub as hb

data = Path(sys.argv[1])
picture = Path(sys.argv[2] if len(sys.argv) > 2 else "online_retail.png")
countries = ["United Kingdom", "Germany", "France", "EIRE", "Spain", "Netherlands", "Belgium", "Switzerland"]
columns = {
    "Country": countries,
    "InvoiceDate": (dt.datetime(2010, 12, 1), dt.datetime(2011, 12, 10)),
    "Quantity": (0, 100),
    "UnitPrice": (0.0, 20.0),
    "StockCode": "key",  # what is sold is not public: a code only one customer buys must not show
}
budget = hb.Budget(epsilon=4, delta=1e-6)

# %% Revenue by country. What one customer can change is lines times pounds a line, and so is the noise: here 100 lines
# count (most customers have fewer) and 50 pounds a line (most lines are smaller). The error bars cover the noise, not
# what this leaves out
lines = hb.protect(
    data / "online_retail.csv.gz",
    unit="CustomerID",
    columns=columns,
    budget=budget,
    max_total_rows=100,
)
revenue = "sum(least(Quantity * UnitPrice, 50)) AS revenue"
question = f"SELECT Country, {revenue}, count(*) AS lines FROM t GROUP BY Country"
print(lines.explain(question, epsilon=1, delta=1e-7))
print(lines.sql(question, epsilon=1, delta=1e-7), "\n")

# %% Revenue by month: every month is public, so every month is reported
monthly = lines.sql(
    f"SELECT year(InvoiceDate) AS year, month(InvoiceDate) AS month, {revenue} FROM t GROUP BY year, month",
    epsilon=1,
    delta=1e-7,
)
print(monthly, "\n")
monthly.plot("revenue").save(picture)
print(f"picture: {picture}\n")

# %% Best sellers: private keys, so only codes that enough customers buy are named
buyers = hb.protect(
    data / "online_retail.csv.gz", unit="CustomerID", columns=columns, budget=budget, max_groups=50, max_rows=1
)
print(
    buyers.sql(
        "SELECT StockCode, count(DISTINCT CustomerID) AS customers FROM t GROUP BY StockCode "
        "ORDER BY customers DESC LIMIT 10",
        epsilon=1,
        delta=5e-7,
    ),
    "\n",
)

# %% What is left
print(budget)
