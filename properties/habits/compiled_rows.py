# SPDX-License-Identifier: Apache-2.0
"""compiled_rows.py LIBRARY COMPILER...: rows of softmax are the library's, whichever compiler asks for them: compiled_rows.cpp
needs all that the library has, by the same names, and compiles no rows of its own."""
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).parent


def symbols(file, *options):
    lines = subprocess.run(["nm", *options, file], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1] for line in lines if "each_row" in line}


library, *compilers = sys.argv[1:]
has = {name for name in symbols(library, "--defined-only") if "each_row_compiled" in name}
faults = [] if has else [f"{library} has no rows of softmax"]
with tempfile.TemporaryDirectory() as folder:
    for compiler in compilers:
        object_file = pathlib.Path(folder, "rows.o")
        subprocess.run([compiler, "-std=c++20", "-O1", "-DREGROUP_ONE_TARGET", f"-I{here.parent.parent}/include", "-c",
                        here / "compiled_rows.cpp", "-o", object_file], check=True)
        faults += [f"{compiler} asks for {name}, which is not there" for name in symbols(object_file, "-u") - has]
        faults += [f"{compiler} does not ask for {name}" for name in has - symbols(object_file, "-u")]
        faults += [f"{compiler} compiles {name}" for name in symbols(object_file, "--defined-only")]
print(*faults, f"{len(has)} kinds of rows, {len(faults)} faults", sep="\n")
sys.exit(bool(faults))
