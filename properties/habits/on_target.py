# SPDX-License-Identifier: Apache-2.0
"""on_target.py TARGET PROGRAM|TESTS.py [PART_OF_A_NAME...]: runs tests under REGROUP_TARGET; ends with 77, skipped, where this
processor lacks it."""
import os
import subprocess
import sys

target, program, *parts = sys.argv[1:]
command = [program, "--gtest_brief=1", *(["--gtest_filter=" + ":".join(f"*{part}*" for part in parts)] if parts else [])]
if program.endswith(".py"):
    command = [sys.executable, program, *(word for part in parts for word in ("-k", part))]
run = subprocess.run(command, env={**os.environ, "REGROUP_TARGET": target}, capture_output=True, text=True)
lacks = "which this processor lacks" in run.stdout + run.stderr
print(f"this processor lacks {target}" if lacks else run.stdout + run.stderr)
sys.exit(77 if lacks else run.returncode)
