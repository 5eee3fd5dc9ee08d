# SPDX-License-Identifier: Apache-2.0
"""same_bits.py --reference PROGRAM --root DIRECTORY -- COMPILER FLAGS...

Compiles the library and properties/programs/bits.cpp with the given compiler and flags, and compares what it prints, on
the plain instruction set and on the best this machine has, with what PROGRAM prints on the plain one.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def printed(program, target):
    environment = {name: value for name, value in os.environ.items() if name != "REGROUP_TARGET"}
    if target:
        environment["REGROUP_TARGET"] = target
    run = subprocess.run([program], env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{program} under REGROUP_TARGET={target or 'the best'} ends with {run.returncode}:\n{run.stderr}")
    cases = dict(line.rsplit(maxsplit=1) for line in run.stdout.splitlines())
    if not cases:
        sys.exit(f"{program} prints no case")
    return cases


def run_or_exit(command):
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"does not compile: {' '.join(command)}\n{run.stderr}")


arguments = argparse.ArgumentParser()
arguments.add_argument("--reference", required=True)
arguments.add_argument("--root", type=pathlib.Path, required=True)
arguments.add_argument("command", nargs="+")
arguments = arguments.parse_args()
compiler = [word for argument in arguments.command for word in argument.split()]
root = arguments.root
sources = sorted((root / "src").glob("*.cpp")) + [root / "properties/programs/bits.cpp"]

expected = printed(arguments.reference, "baseline")
different = 0
with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "bits")
    # gnu++20, as CMake gives it to consumers: there g++ contracts a * b + c, which strict c++20 would hide.
    command = [*compiler, "-std=gnu++20", "-I", str(root / "include")]
    parts = []
    for source in sources:
        level = re.search(r"_(v[34])(_bf16)?\.cpp$", source.name)  # one instruction set's file gets its flags, as in CMake
        if level:
            parts.append(os.path.join(folder, source.stem + ".o"))
            bf16 = ["-mavx512bf16"] if level[2] else []
            run_or_exit([*command, f"-march=x86-64-{level[1]}", *bf16, "-c", str(source), "-o", parts[-1]])
        else:
            parts.append(str(source))
    run_or_exit([*command, *parts, "-o", program, "-ltbb"])
    for target in ("baseline", None):
        found = printed(program, target)
        for case in sorted(expected.keys() | found.keys()):
            if expected.get(case) != found.get(case):
                different += 1
                print(f"{case} on {target or 'the best'} instruction set: {found.get(case)}, expected {expected.get(case)}")
print(f"{len(expected)} cases, {different} differences")
sys.exit(different != 0)
