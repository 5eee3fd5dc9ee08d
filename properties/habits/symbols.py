# SPDX-License-Identifier: Apache-2.0
"""symbols.py ARCHIVE: objects written for one instruction set (NAME_v3, NAME_v4, NAME_v4_amx) define no weak symbols."""
import re
import subprocess
import sys

names = subprocess.run(["nm", "-C", "--defined-only", "-A", sys.argv[1]], capture_output=True, text=True, check=True).stdout
objects = set(re.findall(r"([^:/]*_v[34]\w*\.cpp\.o):", names))
weak = [line for line in names.splitlines() if re.search(r"_v[34]\w*\.cpp\.o:[0-9a-f]* [WwVvu] ", line)]
if not objects:
    sys.exit("no object is named for an instruction set: this test looks at nothing")
if weak:
    sys.exit("the linker may keep these for a program of a lesser machine:\n" + "\n".join(weak))
