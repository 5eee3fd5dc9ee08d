# SPDX-License-Identifier: Apache-2.0
"""by_hand.py SOURCE NVCC FLAGS...: kernels over the operations of cuda/block.hpp have no more shuffles, barriers and
accesses of each memory than those of SOURCE that are written by hand, call nothing, know each address's memory, and are at
most a twelfth longer. Counted in PTX, once unrolled and inlined; the length in the code for sm_90a, since kernels use nothing
that it alone has and one source is enough to see that it compiles."""
import pathlib
import re
import subprocess
import sys
import tempfile

PAIRS = {"fold_short_rows": "rows_by_hand", "fold_ranges": "ranges_by_hand"}
COUNTED = {"shuffles": r"shfl\.", "barriers": r"(bar|barrier)\.", "reads of shared memory": r"ld\.(volatile\.)?shared",
           "writes of it": r"st\.(volatile\.)?shared", "reads of global memory": r"ld\.global",
           "writes of it there": r"st\.global", "exponentials": r"ex2\.", "products and sums": r"(fma|add|mul)\.\w*\.?f32"}
NEVER = {"calls": r"call", "accesses of unknown memory": r"(ld|st)\.(v\d\.)?[bfus]\d+", "local memory": r"(ld|st)\.local"}
MARGIN = 1.08
here = pathlib.Path(__file__).resolve().parent
source, nvcc, *flags = sys.argv[1:]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout + done.stderr


def one(of, name):
    """The only one of them whose mangled name holds this one."""
    (found,) = [value for key, value in of.items() if name in key]
    return found


def count(body, operation):
    return len(re.findall(rf"^\s*(?:@!?%p\d+ )?{operation}", body, re.MULTILINE))


with tempfile.TemporaryDirectory() as folder:
    run(nvcc, *flags, f"-I{here.parents[1] / 'include'}", "-arch=sm_90a", "-cubin", "--keep", "--keep-dir", folder,
        "-o", f"{folder}/code", source)
    (ptx,) = pathlib.Path(folder).glob("*.ptx")
    bodies = dict(re.findall(r"\.entry (\w+)\(.*?\n\{(.*?)\n\}", ptx.read_text(encoding="utf-8"), re.DOTALL))
    sections = re.findall(r"\.text\.(\w+)\s+PROGBITS\s+\w+\s+\w+\s+(\w+)", run("readelf", "-SW", f"{folder}/code"))
lengths = {name: int(size, 16) // 16 for name, size in sections}
faults = []
for ours, theirs in PAIRS.items():
    mine, hand = one(bodies, ours), one(bodies, theirs)
    for what, operation in COUNTED.items():
        print(f"{ours}: {count(mine, operation)} {what}, by hand {count(hand, operation)}")
        if count(mine, operation) > count(hand, operation):
            faults.append(f"{ours}: more {what} than by hand")
    faults += [f"{ours}: {count(mine, operation)} {what}" for what, operation in NEVER.items() if count(mine, operation)]
    print(f"{ours}: {one(lengths, ours)} instructions, by hand {one(lengths, theirs)}")
    if one(lengths, ours) > MARGIN * one(lengths, theirs):
        faults.append(f"{ours}: more than a twelfth longer than by hand")
print(f"{len(faults)} faults", *faults, sep="\n")
sys.exit(bool(faults))
