# SPDX-License-Identifier: Apache-2.0
"""registers.py SOURCE TABLE NVCC FLAGS...: no kernel of SOURCE keeps anything on the stack or spills (but what its budget
says), each stays within its budget of registers and shared memory, none is a trap (what nvcc compiles, without a word, where
a device would need the address of a host's constant), and ptxas serialises no wgmma. For sm_80 and sm_90, or sm_90a where
kernels use wgmma. Writes TABLE, a line a kernel, and what it depends on to TABLE.d."""
import pathlib
import re
import subprocess
import sys
import tempfile

BUDGETS = {  # kernel: (registers a thread, bytes of static shared memory[, bytes spilled])
    "fold_short_rows": (168, 17_500),
    "fold_ranges": (168, 20_000),
    "fold_nodes": (72, 8_000),
    "scan_short_rows": (255, 35_000),
    "scan_totals": (168, 21_000),
    "scan_nodes": (56, 8_000),
    "scan_tiles": (168, 37_000),
    "scan_begin": (32, 0),
    "scan_chain": (168, 38_000),
    "scan_first_places": (56, 0),
    "put_first_keys": (32, 0),
    "map_short_rows": (128, 0),
    "map_held_rows": (255, 20_000, 32),
    "map_clustered_rows": (255, 20_000, 32),
    "map_rows_of_tiles": (208, 2_000),
    "map_split_rows": (168, 0, 32),
    "attend_nodes": (168, 40_000, 80),
    "begin_tickets": (32, 0),
    "merge_nodes": (128, 0),
    "merge_states": (80, 0),
    "normalise_states": (56, 0),
    "attend_nodes on tensor cores": (255, 17_408, 400),  # half of what a multiprocessor of sm_90 has, with large_bytes
    "merge_nodes on tensor cores": (128, 0),
    "attend_nodes of float on tensor cores": (255, 47_000, 60),
    "merge_nodes of float on tensor cores": (128, 0),
}
here = pathlib.Path(__file__).resolve().parent
source, table, nvcc, *flags = sys.argv[1:]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout + done.stderr


def short(name):
    """`fold_ranges<plus<float>, row_batch<float const>, ...>` of a demangled `void run_kernel<...>(...)`."""
    name = name[:name.rfind(">(")]  # what is left of the parameters
    name = re.sub(r"regroup::|cuda::|std::|softmax_parts::|mask_rules::|\(anonymous namespace\)::|, identity|\(int\)|\(scan_kind\)", "", name)
    return name.removeprefix("void run_kernel<").strip()


faults, lines = [], []
with tempfile.TemporaryDirectory() as folder:
    hopper = "90a" if "attention" in pathlib.Path(source).name else "90"
    targets = [f"--generate-code=arch=compute_{a},code=sm_{a}" for a in ("80", hopper)]
    said = run(nvcc, *flags, f"-I{here.parents[1] / 'include'}", *targets, "-fatbin", "-Xptxas", "-v",
               "-MD", "-MF", f"{table}.d", "-MT", table.replace(" ", "\\ "), "--keep", "--keep-dir", folder,
               "-o", f"{folder}/kernels", source)
    (ptx,) = pathlib.Path(folder).glob("*compute_90*.ptx")
    if re.search(r"^\s*trap;", ptx.read_text(encoding="utf-8"), re.MULTILINE):
        faults.append("a kernel holds a trap: it needs the address of a constant, or calls what only a host can")
faults += [f"ptxas notes {note}: wgmma is serialised" for note in re.findall(r"C75\d\d", said)]
said = subprocess.run(["c++filt"], input=said, capture_output=True, text=True, check=True).stdout
for block in said.split("Compiling entry function ")[1:]:
    name = short(block.split("'")[1])
    if name.startswith("void a_monoid_on_a_device"):
        continue  # never run
    architecture = re.search(r" for '(sm_\w+)'", block)[1]
    stack, stores, loads = (sum(map(int, of)) for of in zip(*re.findall(  # its own and of what it calls
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", block)))
    registers = int(re.search(r"Used (\d+) registers", block)[1])
    shared = int((re.search(r"(\d+) bytes smem", block) or [0, 0])[1])
    of = " of float" if re.search(r"_nodes<float, .*mma_", name) else ""
    most, most_shared, *most_spilled = BUDGETS[name.split("<")[0] + (of + " on tensor cores" if "mma_" in name else "")]
    lines.append(f"{architecture} {registers:4} registers {shared:6} bytes shared  {name}")
    if max(stack, stores) > sum(most_spilled):
        faults.append(f"{architecture} {name}: {stack} bytes of stack, {stores} spilled")
    if registers > most or shared > most_shared:
        faults.append(f"{architecture} {name}: past its budget of {most} registers, {most_shared} bytes")
if faults or not lines:
    sys.exit("\n".join([f"{source}: {len(lines)} kernels, {len(faults)} faults", *faults]))
pathlib.Path(table).write_text("\n".join(lines) + "\n", encoding="utf-8")
