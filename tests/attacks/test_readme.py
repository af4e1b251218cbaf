"""The README's example of attacks runs, and says what it says it does."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent.parent / "README.md"


def test_the_example_of_attacks_runs() -> None:
    (block,) = (b for b in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL) if "import attacks" in b)
    names: dict[str, object] = {}
    checked = 0
    for line in block.splitlines():
        code, _, comment = line.partition("  # ")
        number = re.match(r"[\d.]+\d|\d", comment)
        if number and "=" not in code.split("(")[0]:
            assert eval(code, names) == pytest.approx(float(number.group()), abs=0.005)
            checked += 1
        else:
            exec(code, names)
    assert checked == 4
