# SPDX-License-Identifier: Apache-2.0
"""Every line of C++ in the README stands in a program under examples/, which the tests run: nothing there is only shown."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]


def words(line):
    return " ".join(line.split("//")[0].split())


shown = re.findall(r"^```cpp\n(.*?)^```", (root / "README.md").read_text(encoding="utf-8"), re.M | re.S)
run = {words(line) for file in root.glob("examples/**/*.[ch]*") for line in file.read_text(encoding="utf-8").splitlines()}
faults = [line for block in shown for line in block.splitlines() if words(line) and words(line) not in run]
for line in faults:
    print(f"README.md: not in any example: {line}")
print(f"{len(shown)} blocks, {len(faults)} faults")
sys.exit(1 if faults or not shown else 0)
