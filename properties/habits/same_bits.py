# SPDX-License-Identifier: Apache-2.0
"""same_bits.py --golden FILE --root DIRECTORY --program PROGRAM [--library FILE --compiler COMPILER --level=-O2 -- FLAGS...]
same_bits.py --golden FILE --root DIRECTORY --emulator EMULATOR --compiler COMPILER --level=-O2 -- FLAGS...

Compares what properties/programs/bits.cpp prints, on every instruction set that this machine has, with the golden bits: what
PROGRAM prints, or, where a compiler is named, the program and the library compiled here at that level with FLAGS. With an
emulator, of another kind of processor, all is compiled for that.
Golden bits that change are a new `order_version` and a major release; REGROUP_TARGET=baseline PROGRAM prints them.
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
    run = subprocess.run([*emulator, program], env={**os.environ, "REGROUP_TARGET": target}, capture_output=True, text=True)
    if "which this processor lacks" in run.stderr:
        return None
    if run.returncode != 0:
        sys.exit(f"{program} under REGROUP_TARGET={target} ends with {run.returncode}:\n{run.stderr}")
    return cases_of(run.stdout)


def run_or_exit(command):
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"does not compile: {' '.join(command)}\n{run.stderr}")


def compile_each(command, sources, folder):
    """Compiles sources, each by itself, into objects in a folder."""
    os.makedirs(folder)
    objects = [os.path.join(folder, source.stem + ".o") for source in sources]
    for source, object_file in zip(sources, objects):
        run_or_exit([*command, *flags_of(source), "-c", str(source), "-o", object_file])
    return objects


def target_of(source):
    """The instruction set that a source of the library is for, or None."""
    found = re.search(r"_(v[34](?:_\w+)?)$", source.stem)
    return "x86-64-" + found[1].replace("_", "-") if found else None


def flags_of(source):
    """What CMake compiles a source with, if it is for one instruction set."""
    level, _, more = (target_of(source) or "").removeprefix("x86-64-").partition("-")
    extensions = {"vnni": ["-mavx512vnni"], "bf16": ["-mavx512bf16"], "amx": ["-mavx512bf16", "-mamx-tile", "-mamx-bf16"]}
    return [f"-march=x86-64-{level}", *extensions.get(more, [])] if level else []


def compiled(options, here, folder):
    """The program, compiled here. What is for one instruction set has flags of its own, and comes from the library at -O2, and
    where this processor lacks the set, since nothing can run it; but at -O0 everything is compiled, to see that it can be.
    Of the compiled rows, which are much of the time, only softmax's are; those of segments, which nothing here calls, never."""
    # As CMake gives it to consumers; there g++ contracts a * b + c.
    command = [options.compiler, options.level, "-std=gnu++20", "-I", str(options.root / "include")]
    sources = sorted((options.root / "src").glob("*.cpp"))
    of_targets = {"-O0": targets, "-O2": []}.get(options.level, here)
    kernels = [source for source in sources if target_of(source) in of_targets and not emulator]
    left = ["softmax_segments.cpp", *([] if emulator else ["log_softmax.cpp", "logsumexp.cpp"])]
    others = [source for source in sources if not target_of(source) and source.name not in left]
    objects = compile_each(command, kernels, os.path.join(folder, "kernels"))
    objects += compile_each([*command, *options.flags], [options.root / "properties/programs/bits.cpp", *others],
                            os.path.join(folder, "others"))
    program = os.path.join(folder, "bits")
    run_or_exit([options.compiler, *objects, *(["-static"] if emulator else [options.library, "-ltbb"]), "-o", program])
    return program


targets = ("baseline", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-bf16", "x86-64-v4-amx")
parser = argparse.ArgumentParser()
parser.add_argument("--golden", required=True, type=pathlib.Path)
parser.add_argument("--root", required=True, type=pathlib.Path)
parser.add_argument("--program")
parser.add_argument("--emulator")
parser.add_argument("--library")
parser.add_argument("--compiler")
parser.add_argument("--level")
parser.add_argument("flags", nargs="*")
options = parser.parse_args()

golden = cases_of(options.golden.read_text())
if not golden:
    sys.exit(f"{options.golden} holds no case")
emulator = [options.emulator] if options.emulator else []
here = ["baseline"] if emulator else [target for target in targets if printed(options.program, target) is not None]
different = 0
with tempfile.TemporaryDirectory() as folder:
    program = compiled(options, here, folder) if options.compiler else options.program
    name = " ".join([pathlib.Path(options.compiler).name, options.level, *options.flags]) if options.compiler else "the program"
    for target in here:
        found = printed(program, target)
        if found is None:
            sys.exit(f"{name} does not find {target}, which {options.program} does")
        for case in sorted(golden.keys() | found.keys()):
            if golden.get(case) != found.get(case):
                different += 1
                print(f"{case} by {name} on {target}: {found.get(case)}, golden {golden.get(case)}")
print(f"{name}: {len(golden)} cases on {', '.join(here)}")
print(f"{different} differences")
sys.exit(different != 0)
