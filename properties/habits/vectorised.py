# SPDX-License-Identifier: Apache-2.0
"""vectorised.py COMPILER... : the lane loop of every monoid becomes packs at -O2, for AVX2 and for AVX-512, chosen at run time
or by the compiler's flags (-march=x86-64-v3, -march=x86-64-v4). Reads the machine code of vectorised.cpp: the fold must hold
an innermost loop in which the monoid's own operation works on whole registers (clang: of any size, since it takes as many
floats as it takes of the widest member), and no arithmetic on single numbers. And memory is asked for what comes, which
compilers like to leave out."""
import pathlib
import re
import subprocess
import sys
import tempfile

# What the compiler's own flags are for, if anything; how functions are called that run loops then; their registers.
OWN = next((flag.removeprefix("-march=x86-64-") for flag in sys.argv if flag.startswith("-march=x86-64-v")), None)
LEVELS = {"here": OWN} if OWN else {"v3": "v3", "v4": "v4"}
IS_CLANG = "clang" in sys.argv[1]
REGISTERS = {"v3": "[xy]mm" if IS_CLANG else "ymm", "v4": "zmm"}
# Which of them run squares.
OF_SQUARES = "by_32_bytes" if OWN else "v3"
# monoid (as the symbol says it): the instructions its combine is made of
FOLDS = {
    "fold_leaves<regroup::plus<float>, float, ": "vaddps",
    "fold_leaves<regroup::plus<double>, double, ": "vaddpd",
    "multiplies<float>": "vmulps",
    "scaled_product<float>": "vmulps",
    "scaled_product<double>": "vmulpd",
    "plus<int>": "vpaddd",
    "minimum<float>": "vminps|vcmp.*ps",
    "maximum<float>": "vmaxps|vcmp.*ps",
    "fold_leaves<regroup::any": "vpor|vorps",
    "fold_leaves<regroup::all": "vpand|vptestm",
    "bit_and<unsigned int>": "vpand",
    "bit_or<unsigned int>": "vpor",
    "bit_xor<unsigned int>": "vpxor",
    "fold_leaves<regroup::plus<float>, regroup::bfloat16, ": "vaddps",
    "fold_leaves<regroup::plus<float>, regroup::float16, ": "vaddps",
    "mean<float>": "vaddps",
    "moments<float>": "vdivps",
    "moments<double>": "vdivpd",
    "minmax<float>": "vminps|vcmp.*ps",
    "compensated_plus<float>": "vsubps",
    "argmax<float>, regroup::indexed<float>": "vcmp.*ps",
    "argmin<float>": "vcmp.*ps",
    "load_numbered<regroup::enumerate<float>": "vmaxps|vcmp.*ps",
    "regroup::log_sum_exp<float>": "vfm.*ps",
    "regroup::log_sum_exp<double>": "vfm.*pd",
    "scalar_log_sum_exp": "vfm.*ps",
    "max_and_sum": "vfm.*ps",
    "fold_leaves<log_add": "vfm.*ps",
    "longest_run": "vpadd[bdq]",
    "fold_leaves<box": "vminps|vcmp.*ps",
    "fold_leaves<largest_if_any": "vcmp.*ps",
    "fold_leaves<matrices": "vmulps|vfm.*ps",
    "fold_leaves<regroup::fanout": "vaddpd, vminpd|vcmp.*pd",
    "lowered<regroup::log_sum_exp<float> >, false>::fold": "vfm.*ps",
    "lowered<regroup::log_sum_exp<float> >, false>::put_transposed": "vfm.*ps",
    "lowered<log_add>, false>::fold": "vfm.*ps",
    "lowered<log_add>, false>::put_transposed": "vfm.*ps",
    "copy_elements<regroup::projected<regroup::strided<float const>, softplus>": "vfm.*ps",
    "columns<regroup::plus<float> >": "vaddps",
    "columns<log_add>": "vfm.*ps",
    "fold_ragged<regroup::plus<float>": "vaddps",
    "fold_ragged<log_add": "vfm.*ps",
    "fold_ragged<regroup::affine<float>": "vfm.*ps",
}
# The same by squares of 32 bytes, whatever the processor has beyond AVX2: all of a square's rows are in one loop.
SQUARES = {
    "lowered<regroup::plus<float> >, true>::fold": "8 vaddps",
    "lowered<regroup::plus<float> >, true>::put_moved": "vaddps",
    "lowered<regroup::plus<double> >, true>::fold": "4 vaddpd",
    "lowered<regroup::plus<double> >, true>::put_moved": "vaddpd",
}
# What g++ folds by such squares as well, and clang after turning a tile.
SQUARES_OF_GXX = {
    "fold_lanes<regroup::affine<float>": "4 vfm.*ps",
    "fold_lanes<regroup::affine<double>": "2 vfm.*pd",
    "lowered<regroup::maximum<float> >, true>::fold": "8 vmaxps|vcmp.*ps" if OWN == "v4" else "8 vmaxps",  # by masks there
    "lowered<regroup::maximum<float> >, true>::put_moved": "vmaxps",
    "lowered<regroup::affine<double> >, true>::fold": "2 vfm.*pd",
    "lowered<regroup::affine<double> >, true>::put_moved": "vfm.*pd",
}
FOLDS_OF_CLANG = {
    "fold_leaves<regroup::affine<float>": "vfm.*ps",
    "fold_leaves<regroup::affine<double>": "vfm.*pd",
    "lowered<regroup::maximum<float> >, false>::fold": "vmaxps|vcmp.*ps",
    "lowered<regroup::maximum<float> >, false>::put_transposed": "vmaxps|vcmp.*ps",
    "lowered<regroup::affine<double> >, false>::fold": "vfm.*pd",
    "lowered<regroup::affine<double> >, false>::put_transposed": "vfm.*pd",
}
# Of a long combine, whose loops g++ likes to fill with jumps: all of them.
LOOPS = {"lowered<log_add>, false>::fold": 8, "lowered<log_add>, false>::put_transposed": 3, "columns<log_add>": 3}
# What asks memory, and how: pages are found (t0); lines are brought to the first cache (t0) or the second (t1).
ASKS = {
    "fold_tiles<regroup::plus<float>": "prefetcht0",
    "scan_source<regroup::host::tile_scanner<regroup::plus<float>": "prefetcht0",
    **{f"run_{level}<{f}": instruction for level in LEVELS for f, instruction in {
        "regroup::host::fold_leaves<regroup::minmax<float>": "prefetcht1",
        "regroup::host::fold_leaves<regroup::moments<float>": "prefetcht0",
        "regroup::host::leaf_of<regroup::argmax<float>, regroup::host::load_numbered": "prefetcht1",
        "regroup::host::fold_leaves<regroup::log_sum_exp<float>": "prefetcht1",
        "regroup::host::fold_leaves<regroup::log_sum_exp<float>, float, ": "prefetcht0",
        "columns<regroup::plus<float> >": "prefetcht1",
    }.items()},
}
# Lanes of short stretches, chosen in packs without a loop, by g++.
CHOICES = {"v3": r"vpblendvb.*ymm", "v4": r"zmm.*\{%k"}
CHOSEN = () if IS_CLANG else ("fold_short<regroup::plus<float>", "fold_short<regroup::maximum<float>")
# States with members of 4 and 8 bytes: clang takes no more of them at a time than has the larger in one register.
OF_TWO_SIZES = ("scaled_product<float>", "mean<float>", "moments<float>", "argmax<float>", "argmin<float>")
SINGLE = re.compile(r"v(add|sub|mul|div|max|min|fn?m(add|sub)\d*)s[sd]$")


def innermost_loops(lines):
    """The instructions of each loop of a function that holds no other."""
    at = {int(line.split(":")[0], 16): i for i, line in enumerate(lines)}
    loops = []
    for i, line in enumerate(lines):
        jump = re.search(r"\tj\w+\s+([0-9a-f]+)", line)
        if jump and at.get(int(jump[1], 16), i + 1) <= i:
            loops.append((at[int(jump[1], 16)], i))
    for first, last in loops:
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b in loops):
            yield [line.split("\t")[1:] for line in lines[first:last + 1]]


def is_packed(loop, operation, register):
    """Without another jump, or with all lanes at once: what is left over, and the halving of few lanes, is full of jumps. Or
    as often as `operation` says."""
    *rows, operation = operation.split()
    ops = [(text.split()[0], text) for text in (" ".join(parts) for parts in loop) if text.split()]
    packed = sum(bool(re.match(operation, op) and re.search(register, text)) for op, text in ops)
    return (packed >= int(rows[0] if rows else 1) and not any(SINGLE.match(op) for op, _ in ops)
            and (len(rows) > 0 or sum(op.startswith("j") for op, _ in ops) == 1 or packed >= 8))


here = pathlib.Path(__file__).resolve().parent
with tempfile.TemporaryDirectory() as folder:
    made = pathlib.Path(folder, "folds.o")
    subprocess.run([*sys.argv[1:], "-std=c++20", "-O2", f"-I{here.parents[1] / 'include'}", f"-I{here.parents[1] / 'examples'}",
                    "-c", here / "vectorised.cpp", "-o", made], check=True)
    code = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", made], capture_output=True, text=True,
                          check=True).stdout

faults = []
FOLDS |= FOLDS_OF_CLANG if IS_CLANG else {}
SQUARES |= {} if IS_CLANG else SQUARES_OF_GXX
for name, level, monoids in (*((name, level, FOLDS) for name, level in LEVELS.items()), (OF_SQUARES, "v3", SQUARES)):
    functions = [f.splitlines() for f in code.split("\n\n") if f"run_{name}<" in f.split("\n", 1)[0]]
    for monoid, operations in monoids.items():
        loops = [loop for f in functions if monoid in f[0]
                 for loop in innermost_loops([line for line in f if re.match(r"\s*[0-9a-f]+:\t", line)])]
        register = "[yz]mm" if IS_CLANG and level == "v4" and monoid.startswith(OF_TWO_SIZES) else REGISTERS[level]
        for operation in operations.split(", "):
            packed = sum(is_packed(loop, operation, register) for loop in loops)
            print(f"{name} {monoid}: {packed} of {len(loops)} innermost loops are {operation} on {register}")
            if packed < LOOPS.get(monoid, 1):
                faults.append(f"{name}: {packed or 'no'} loop of {monoid} has {operation} on {register}")
for name, level in LEVELS.items():
    for short in CHOSEN:
        choices = sum(len(re.findall(CHOICES[level], f)) for f in code.split("\n\n")
                      if f"run_{name}<" in f.split("\n", 1)[0] and short in f.split("\n", 1)[0])
        print(f"{name} {short}: {choices} choices are {CHOICES[level]}")
        if choices < 10:
            faults.append(f"{name}: {short} has {choices} {CHOICES[level]}, not 10")
for asking, instruction in ASKS.items():
    if not any(asking in f.split("\n", 1)[0] and instruction in f for f in code.split("\n\n")):
        faults.append(f"{asking} has no {instruction}")
print(*faults, sep="\n")
sys.exit(bool(faults))
