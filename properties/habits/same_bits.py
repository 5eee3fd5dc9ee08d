# SPDX-License-Identifier: Apache-2.0
"""same_bits.py --golden FILE --root DIRECTORY (--program PROGRAM | -- COMPILER FLAGS...)

Compares what properties/programs/bits.cpp prints, on every instruction set that this machine has, with the golden bits:
PROGRAM's, or those of the program and the library compiled here with the given compiler and flags. Golden bits that change
are a new `order_version` and a major release; REGROUP_TARGET=baseline PROGRAM prints them.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def cases_of(lines):
    return dict(line.rsplit(maxsplit=1) for line in lines.splitlines() if line and not line.startswith("#"))


def printed(program, target):
    run = subprocess.run([program], env={**os.environ, "REGROUP_TARGET": target}, capture_output=True, text=True)
    if "which this processor lacks" in run.stderr:
        return None
    if run.returncode != 0:
        sys.exit(f"{program} under REGROUP_TARGET={target} ends with {run.returncode}:\n{run.stderr}")
    return cases_of(run.stdout)


def run_or_exit(command):
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"does not compile: {' '.join(command)}\n{run.stderr}")


def compiled(compiler, root, folder):
    # gnu++20, as CMake gives it to consumers: there g++ contracts a * b + c, which strict c++20 would hide.
    command = [*compiler, "-std=gnu++20", "-I", str(root / "include")]
    sources, objects = [str(root / "properties/programs/bits.cpp")], []
    for source in sorted((root / "src").glob("*.cpp")):
        level = re.search(r"_(v[34])(_vnni|_bf16|_amx)?\.cpp$", source.name)  # one instruction set's file gets its flags, as in CMake
        if level:
            objects.append(os.path.join(folder, source.stem + ".o"))
            more = {"_vnni": ["-mavx512vnni"], "_bf16": ["-mavx512bf16"],
                    "_amx": ["-mavx512bf16", "-mamx-tile", "-mamx-bf16"]}.get(level[2], [])
            run_or_exit([*command, f"-march=x86-64-{level[1]}", *more, "-c", str(source), "-o", objects[-1]])
        else:
            sources.append(str(source))
    program = os.path.join(folder, "bits")
    run_or_exit([*command, *sources, *objects, "-o", program, "-ltbb"])
    return program


arguments = argparse.ArgumentParser()
arguments.add_argument("--golden", required=True, type=pathlib.Path)
arguments.add_argument("--root", required=True, type=pathlib.Path)
arguments.add_argument("--program")
arguments.add_argument("command", nargs="*")
arguments = arguments.parse_args()

golden = cases_of(arguments.golden.read_text())
if not golden:
    sys.exit(f"{arguments.golden} holds no case")
different, compared = 0, []
with tempfile.TemporaryDirectory() as folder:
    compiler = [word for argument in arguments.command for word in argument.split()]
    program = arguments.program or compiled(compiler, arguments.root, folder)
    for target in ("baseline", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-bf16", "x86-64-v4-amx"):
        found = printed(program, target)
        if found is None:
            continue
        compared.append(target)
        for case in sorted(golden.keys() | found.keys()):
            if golden.get(case) != found.get(case):
                different += 1
                print(f"{case} on {target}: {found.get(case)}, golden {golden.get(case)}")
print(f"{len(golden)} cases on {', '.join(compared)}: {different} differences")
sys.exit(different != 0)
