# SPDX-License-Identifier: Apache-2.0
"""on_target.py TARGET PROGRAM: runs a test program under REGROUP_TARGET; ends with 77, skipped, where this processor lacks it."""
import os
import subprocess
import sys

target, program = sys.argv[1:]
run = subprocess.run([program, "--gtest_brief=1"], env={**os.environ, "REGROUP_TARGET": target}, capture_output=True, text=True)
lacks = "which this processor lacks" in run.stdout + run.stderr
print(f"this processor lacks {target}" if lacks else run.stdout + run.stderr)
sys.exit(77 if lacks else run.returncode)
