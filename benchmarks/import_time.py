"""What ``import hubbub`` costs beyond numpy, and what its first release costs, in fresh interpreters."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from report import write

PROGRAMS = {
    "nothing": "pass",
    "numpy": "import numpy",
    "hubbub": "import hubbub",
    "numpy, hubbub and a first release": "import numpy, hubbub; hubbub.Laplace(1, epsilon=1).release(5)",
    "opendp": "import opendp.prelude",
    "diffprivlib": "import diffprivlib",
}


def wall(code: str, repeats: int = 15) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> None:
    rows = [{"program": name, "seconds": wall(code)} for name, code in PROGRAMS.items()]
    base, numpy = rows[0]["seconds"], rows[1]["seconds"]
    lines = ["| import | of numpy's time | ms beyond numpy |", "|---|---|---|"]
    for row in rows[1:]:
        spent = row["seconds"]
        lines.append(f"| {row['program']} | {(spent - base) / (numpy - base):.2f}x | {(spent - numpy) * 1e3:+.0f} |")
    write("import_time", rows, "\n".join(lines))


if __name__ == "__main__":
    main()
