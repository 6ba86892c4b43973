"""docs/migration.md: each row of its tables on the classic models and optimizers names a test that there is."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = [*(ROOT / "tests" / "pretrained_bert").glob("test_*.py"), *(ROOT / "tests" / "optim").glob("test_*.py")]


def test_each_row_names_its_test() -> None:
    text = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    rows = 0
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        table = [line for line in section.splitlines() if line.startswith("|")]
        if not table or "| test |" not in table[0]:
            continue
        files = [path for path in TESTS if path.name in section] or TESTS
        there = set(re.findall(r"^def (test_\w+)", "\n".join(path.read_text("utf-8") for path in files), re.MULTILINE))
        for row in table[2:]:
            named = re.fullmatch(r".* \| `(test_\w+)` \|", row)
            assert named, f"no test is named: {row}"
            assert named[1] in there, f"{named[1]} is in none of {', '.join(path.name for path in files)}"
            rows += 1
    assert rows > 40
