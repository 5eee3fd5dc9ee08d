# SPDX-License-Identifier: Apache-2.0
"""summary.py JUNIT STATUS: one line `N passed, N failed` from ctest's report and exit status. A file of Python unittests
counts as many as it ran; what a test leaves out is named and counts as neither."""
import os
import re
import sys
import xml.etree.ElementTree

report, status = sys.argv[1], int(sys.argv[2])
if not os.path.exists(report):
    sys.exit("ctest wrote no report: no test ran")

passed = failed = 0
for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
    output = case.findtext("system-out") or ""
    ran = re.findall(r"^Ran (\d+) tests? in ", output, re.MULTILINE)
    verdict = re.findall(r"^(?:OK|FAILED) \((.*)\)$", output, re.MULTILINE) if ran else []
    counts = dict(re.findall(r"(\w+)=(\d+)", verdict[-1])) if verdict else {}
    unittests = int(ran[-1]) - int(counts.get("skipped", 0)) if ran else 1
    faults = int(counts.get("failures", 0)) + int(counts.get("errors", 0))
    skipped = case.find("skipped")
    if case.get("status") == "run":
        passed += unittests
    elif skipped is not None and (skipped.get("message") or "").startswith("SKIP"):
        print(f"left out: {case.get('name')}")
    else:
        failed += faults or 1
        passed += max(0, unittests - faults) if faults else 0
if status != 0 and failed == 0:
    print(f"ctest itself ended with {status}")
    failed = 1
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0 or passed == 0)
