# SPDX-License-Identifier: Apache-2.0
"""readme.py [PROGRAM]: every line of C++ in the README stands in a program under examples/, which the tests run: nothing there
is only shown. And the report of laws that it shows is what PROGRAM, the example check_laws, prints, but for `...`, which
stands for what is left out."""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
readme = (root / "README.md").read_text(encoding="utf-8")


def words(line):
    return " ".join(line.split("//")[0].split())


def not_printed(report, output):
    """The first line of each run of lines, between those of `...`, that does not follow the run before it in the output."""
    missing, at = [], 0
    for run in re.split(r"^ *\.\.\.\n", report, flags=re.M):
        found = f"\n{output}".find(f"\n{run}", at)
        if found < 0:
            missing.append(run.splitlines()[0])
        else:
            at = found + len(run)
    return missing


shown = re.findall(r"^```cpp\n(.*?)^```", readme, re.M | re.S)
run = {words(line) for file in root.glob("examples/**/*.[ch]*") for line in file.read_text(encoding="utf-8").splitlines()}
lines = [line for block in shown for line in block.splitlines()]
faults = [f"not in any example: {line}" for line in lines if words(line) and words(line) not in run]

reports = re.findall(r"^```\n(the laws of .*?)^```", readme, re.M | re.S)
if len(sys.argv) > 1:
    output = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout
    faults += [f"not printed by {sys.argv[1]}: {line}" for report in reports for line in not_printed(report, output)]
for fault in faults:
    print(f"README.md: {fault}")
print(f"{len(shown)} blocks, {len(reports)} reports, {len(faults)} faults")
sys.exit(1 if faults or not shown or not reports else 0)
