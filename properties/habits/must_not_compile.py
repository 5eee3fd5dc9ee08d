# SPDX-License-Identifier: Apache-2.0
"""must_not_compile.py SOURCE COMPILER FLAGS...: the compiler must refuse SOURCE and say the sentence of its line `// expect: SENTENCE`."""
import re
import subprocess
import sys

source, *compile_command = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    expected = re.findall(r"^// expect: (.+?)\s*$", file.read(), re.MULTILINE)
if not expected:
    sys.exit(f"{source} has no line `// expect: SENTENCE`")
run = subprocess.run([*compile_command, source], capture_output=True, text=True)
if run.returncode == 0:
    sys.exit(f"{source} compiles; it must not")
missing = [sentence for sentence in expected if sentence not in run.stderr]
if missing:
    sys.exit(f"{source} is refused, but without {missing}; the compiler said:\n{run.stderr}")
