# SPDX-License-Identifier: Apache-2.0
"""Who may include whom. A file may include what its row names and whatever those rows may include in turn; a new edge is
a decision, taken by editing the table. Also: no macros in public headers, nothing includes src/, tests, benchmarks and
examples use public headers only, and the attention state can be taken away alone."""
import pathlib
import re
import sys

TABLE = {
    "float16": (),
    "math": (),
    "error": (),
    "memory": (),
    "monoid": ("float16",),
    "require_monoid": ("monoid",),
    "view": ("error", "monoid"),  # for `index`
    "outputs": ("view", "source", "error"),
    "source": ("view",),
    "batch": ("source",),
    "executor": ("batch",),
    "members": ("float16",),
    "monoids": ("monoid", "math", "error"),
    "host": ("executor", "members", "memory"),
    "algorithms/softmax_row": ("monoids", "view"),
    "algorithms/cross_entropy_row": ("algorithms/softmax_row", "view"),
    "cuda": ("executor", "outputs", "require_monoid", "algorithms/cross_entropy_row"),
    "cuda/attention_masks": ("cuda", "algorithms"),
    "cuda/attention_arguments": ("cuda", "algorithms"),
    "cuda/attention_call": ("cuda", "algorithms"),
    "cuda/attention_kernel": ("cuda/attention_call",),
    "cuda/attention_tile": ("cuda/attention_call",),
    "cuda/attention_mma_rows": ("cuda/attention_tile",),
    "cuda/attention_mma16_buffers": ("cuda/attention_mma_rows",),
    "cuda/attention_mma16": ("cuda/attention_mma16_buffers",),
    "cuda/attention_mma_tf32": ("cuda/attention_mma_rows",),
    "cuda/attention_mma": ("cuda/attention_mma16", "cuda/attention_mma_tf32"),
    "cuda/attention_merge": ("cuda/attention_kernel",),
    "cuda/attention_work": ("cuda/attention_arguments", "cuda/attention_call", "algorithms"),
    "cuda/attention_plan": ("cuda/attention_merge", "cuda/attention_tile", "cuda/attention_work"),
    "cuda/attention_states": ("cuda/attention_plan",),
    "cuda/attention": ("cuda/attention_masks", "cuda/attention_mma", "cuda/attention_states"),
    "reduce": ("executor", "outputs", "require_monoid"),
    "scan": ("executor", "outputs", "require_monoid"),
    "saving": ("error", "members"),
    "stream": ("executor", "host", "saving", "require_monoid"),
    "mpi/communicator": ("error", "view"),
    "mpi/operation": ("mpi/communicator",),
    "mpi": ("mpi/communicator", "host", "reduce", "scan", "stream"),
    "mpi/attention": ("mpi", "algorithms"),
    "mpi/softmax": ("mpi", "algorithms"),
    "laws": ("monoid", "members"),
    "laws/bounds_of_sums": ("laws", "monoids"),
    "laws/bounds_of_weights": ("laws/bounds_of_sums",),
    "laws/bounds": ("laws/bounds_of_weights",),
    "laws/search": ("laws",),
    "laws/subject": ("laws", "reduce", "scan", "stream", "host"),
    "laws/draws": ("laws/search", "laws/subject"),
    "laws/checker": ("laws/bounds", "laws/draws"),
    "check_laws": ("laws/checker", "require_monoid"),
    "algorithms": ("reduce", "scan", "monoids", "math", "memory", "host", "algorithms/cross_entropy_row"),
    "regroup": ("algorithms", "laws", "stream"),
}
USES_RAPIDCHECK = {"check_laws", "laws/search"}
ALONE = "monoids/softmax_mean.hpp"  # reaches nothing but these rows and the standard library
ALONE_REACHES = {"monoids", "monoid", "math", "float16"}

root = pathlib.Path(__file__).resolve().parents[2]
public = root / "include/regroup"
faults = []


def row(path):
    """The table's row of a public header: its own name where the table has it, else its folder."""
    name = path.removesuffix(".hpp").removesuffix(".cuh")
    return name if name in TABLE else name.split("/")[0]


def reachable(name):
    return {name}.union(*(reachable(other) for other in TABLE[name])) if name in TABLE else set()


def includes(file):
    """Pairs (line number, what is included) of a file."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if found:
            yield number, found[1]


def ours(file, name):
    """The path below include/regroup of what `file` includes as `name`, or None where it is not ours."""
    if name.startswith("regroup/"):
        return name.removeprefix("regroup/")
    beside = (file.parent / name).resolve()
    return str(beside.relative_to(public)) if beside.is_relative_to(public) and beside.exists() else None


headers = sorted([*public.rglob("*.hpp"), *public.rglob("*.cuh")])
for file in headers:
    path = str(file.relative_to(public))
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if re.match(r"\s*#\s*define\b", line):
            faults.append(f"include/regroup/{path}:{number}: a macro in a public header")
    if row(path) not in TABLE:
        faults.append(f"include/regroup/{path}: the table has no row {row(path)}")
    for number, name in includes(file):
        target = ours(file, name)
        if target and row(target) not in reachable(row(path)):
            faults.append(f"include/regroup/{path}:{number}: {row(path)} may not include {target}")
        if name.startswith("rapidcheck") and row(path) not in USES_RAPIDCHECK:
            faults.append(f"include/regroup/{path}:{number}: the laws name no test framework ({name})")
        if name.endswith(".cuh") and path.endswith(".hpp"):
            faults.append(f"include/regroup/{path}:{number}: a .hpp never includes a .cuh")

for folder in ("include", "properties", "bench", "examples"):
    for file in sorted([*(root / folder).rglob("*.[ch]pp"), *(root / folder).rglob("*.cu*")]):
        inside = file.relative_to(root)
        for number, name in includes(file):
            beside = (file.parent / name).resolve()
            if re.search(r"(^|/)src/", name) or (beside.exists() and beside.is_relative_to(root / "src")):
                faults.append(f"{inside}:{number}: nothing includes src/ ({name})")

seen, open_files = set(), [ALONE]
while open_files:
    path = open_files.pop()
    if path in seen or not (public / path).exists():
        continue
    seen.add(path)
    if row(path) not in ALONE_REACHES:
        faults.append(f"{ALONE} reaches {path}")
    for _, name in includes(public / path):
        target = ours(public / path, name)
        if target:
            open_files.append(target)
        elif "/" in name or name.endswith((".h", ".hpp")):
            faults.append(f"{ALONE} reaches <{name}> by way of {path}")

print(f"{len(headers)} public headers, {len(faults)} faults", *faults, sep="\n")
sys.exit(bool(faults))
