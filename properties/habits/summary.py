# SPDX-License-Identifier: Apache-2.0
"""summary.py JUNIT: one line `N passed, N failed` from ctest's report. A Python test file counts as many as it ran."""
import re
import sys
import xml.etree.ElementTree

passed = failed = 0
for case in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
    output = case.findtext("system-out") or ""
    ran = re.findall(r"^Ran (\d+) tests? in ", output, re.MULTILINE)
    left_out = case.find("skipped") is not None and case.get("status") != "fail"
    if case.get("status") == "run":
        skipped = re.findall(r"^OK \(skipped=(\d+)\)", output, re.MULTILINE)
        passed += int(ran[-1]) - sum(map(int, skipped)) if ran else 1
    elif left_out and (case.find("skipped").get("message") or "").startswith("SKIP"):
        print(f"left out: {case.get('name')}")
    else:
        verdict = re.findall(r"^FAILED \((.*)\)$", output, re.MULTILINE)
        faults = sum(map(int, re.findall(r"(?:failures|errors)=(\d+)", verdict[-1]))) if ran and verdict else 0
        failed += faults or 1
        passed += max(0, int(ran[-1]) - faults) if faults else 0
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0 or passed == 0)
