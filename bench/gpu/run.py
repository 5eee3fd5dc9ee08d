# SPDX-License-Identifier: Apache-2.0
"""./dev gpu [FILTER] [--json FILE] [--plot FILE] [--markdown FILE] [--no-tests]: the tests and examples that need a GPU (all
but the tool's), plain and, as far as half of the time goes, at small sizes under compute-sanitizer; then each work beside
its peers. One run that stops nine minutes after it began, and names what it left out.

Works go round by round, one call of each contender after another, the L2 cache written over between them; figures are
medians of CUDA events. The limits, reading, copying and matrix products, are measured in the same run. 0: every test was
run and passed.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import report  # noqa: E402
import works  # noqa: E402

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
BUDGET = 540  # seconds for all of it but the build: what is left over is named
TESTS = 270  # of them for the tests, so that works have theirs
ROUNDS, CALLS = 3, 8
CACHE = 1 << 28  # bytes written between calls: more than an L2 cache holds

ALL = works.works("""
reduce/plus/fp32/256M reduce/plus/fp16/256M reduce/plus/bf16/256M
reduce/log_sum_exp/fp32/256M reduce/log_sum_exp/fp16/256M reduce/log_sum_exp/bf16/256M
reduce_segments/plus/fp32/256M_of_1000 reduce_segments/log_sum_exp/fp32/256M_of_20
reduce_segments/log_sum_exp/fp32/256M_of_1000 reduce_segments/log_sum_exp/fp32/256M_of_mixed
scan/plus/fp32/256M scan/log_sum_exp/fp32/256M
softmax/rows/fp32/128Kx1K softmax/rows/fp32/32Kx4K softmax/rows/fp32/8Kx16K softmax/rows/fp32/2Kx64K
softmax/rows/fp32/512x256K softmax/rows/bf16/128Kx1K softmax/rows/bf16/32Kx4K softmax/rows/bf16/8Kx16K
softmax/rows/bf16/2Kx64K softmax/rows/bf16/512x256K logsumexp/rows/fp32/8Kx16K logsumexp/rows/bf16/8Kx16K
decode/full/bf16/h64_kv8_n32K_d128 decode/full/bf16/h1024_kv128_n32K_d128
decode/paged/bf16/h64_kv8_n32K_d128_p16 decode/paged/bf16/h1024_kv128_n32K_d128_p16
attention/full/bf16/h256_n2K_d64 attention/causal/bf16/h256_n2K_d64 attention/full/bf16/h128_n2K_d128
attention/causal/bf16/h128_n2K_d128 attention/full/bf16/h16_n16K_d128 attention/causal/bf16/h16_n16K_d128
attention/full/fp16/h256_n2K_d64 attention/causal/fp16/h256_n2K_d64 attention/full/fp16/h128_n2K_d128
attention/causal/fp16/h128_n2K_d128 attention/full/fp32/h64_n2K_d64 attention/causal/fp32/h64_n2K_d64
attention/full/fp32/h32_n2K_d128 attention/causal/fp32/h32_n2K_d128
""")


def verdict(status, output):
    """What a program of tests ended with: `passed`, or why not. 77 is for want of a GPU."""
    if status == 0:
        return "passed"
    lines = [line for line in output.splitlines() if line.strip()]
    return f"exit status {status}: {lines[-1] if lines else 'no output'}"


def run(command, seconds, **environment):
    """The verdict of a command, which is ended with all its children when its time is up."""
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return f"more than {seconds:.0f} s"
    return verdict(child.returncode, output)


def tests(programs, left):
    """(name, verdict) of every program, and of it under every tool of compute-sanitizer at small sizes."""

    def within(most, command, **environment):
        seconds = min(left(), most)
        return run(command, seconds, **environment) if seconds > 0 else "not run: the time for tests was over"

    if not programs:
        yield "tests", "not run: none is built"
    for program in programs:
        yield program.name, within(60, [program])
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if sanitizer is None:
        yield "compute-sanitizer", "not run: not found"
        return
    under = lambda pair: within(
        90, [sanitizer, "--tool", pair[1], "--error-exitcode", "1", pair[0]], REGROUP_SMALL="1"
    )
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        pairs = list(itertools.product(programs, TOOLS))
        for (program, tool), said in zip(pairs, pool.map(under, pairs), strict=True):
            yield f"{program.name}, {tool}", said


def clocks():
    """The device as it is now: its name, driver, clocks, temperature, and what holds the clocks back. Nothing without."""
    if not shutil.which("nvidia-smi"):
        return {}
    fields = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,clocks_throttle_reasons.active"
    done = subprocess.run(
        ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        return {}
    return dict(zip(fields.split(","), done.stdout.strip().split("\n")[0].split(", "), strict=True))


def commit():
    """Of what is measured; where no git is, unknown."""
    if not shutil.which("git"):
        return "unknown"
    head = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    return subprocess.run(head, capture_output=True, text=True, check=False).stdout.strip()


def seconds_of(call, flush):
    """The median time of a call on the device, by events. The device sleeps first, so that the host is ahead of it; what was
    written over the L2 cache is read once more, so that no call pays for writing it back."""
    import torch

    pairs = []
    for _ in range(CALLS):
        flush.zero_()
        flush.max()
        torch.cuda._sleep(1 << 21)  # clocks: a millisecond
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return sorted(begin.elapsed_time(end) for begin, end in pairs)[CALLS // 2] / 1000


def limits(flush, library):
    """Bytes a second of a copy and of reading, and operations a second of matrix products."""
    import torch

    x = torch.ones(1 << 28, device="cuda")
    y = torch.empty_like(x)
    a = torch.randn(8192, 8192, device="cuda")
    b = a.bfloat16()
    rate = lambda size, *calls: size / min(seconds_of(call, flush) for call in calls) / 1e9
    by_cub = library.entry("reduce/plus/fp32 cub", (1, x.numel()), (x, y[:1]))
    found = {
        "copy": rate(2 * x.nbytes, lambda: y.copy_(x)),
        "read": rate(x.nbytes, lambda: x.sum(), by_cub),
        "bf16 matrix product": rate(2 * 8192**3, lambda: b @ b),
    }
    torch.set_float32_matmul_precision("high")  # tf32, which no peer below is given
    found["a third of a tf32 matrix product"] = rate(2 * 8192**3, lambda: a @ a) / 3
    torch.set_float32_matmul_precision("highest")
    return found


def limit_of(work):
    """Which of them bounds a work: what is not written need only be read, and fp32's errors need three products of tf32."""
    if work.verb == "attention":
        return "a third of a tf32 matrix product" if work.type == "fp32" else "bf16 matrix product"
    return "copy" if work.verb in ("softmax", "scan") else "read"


def measured(work, library, flush, limit):
    import contenders
    import torch

    given = contenders.inputs(work)
    expected = contenders.reference(work, given)
    size, unit = works.amount(work)
    ready, errors, absent, samples = {}, {}, {}, {}
    for who, make in {**contenders.own(work, given, library), **contenders.peers(work, given)}.items():
        try:
            ready[who] = make()
            errors[who] = contenders.error(work, ready[who](), expected)
        except Exception as e:  # noqa: BLE001: whatever a peer throws, the others go on
            ready.pop(who, None)
            absent[who] = str(e).strip().split("\n")[0][:200]
            try:
                torch.cuda.synchronize()
            except Exception:  # noqa: BLE001: nobody can go on in a context that faulted
                raise RuntimeError(f"{work.name}: {who} faulted: {absent[who]}") from e
    del expected
    torch.cuda.empty_cache()
    for _ in range(ROUNDS):
        for who, call in ready.items():
            samples.setdefault(who, []).append(size / seconds_of(call, flush) / 1e9)
    name = limit_of(work)
    return report.record(work.name, None, unit, samples, [(name, limit[name])], errors, {}, absent, None)


def measure(chosen, library, path):
    """The limits and the records of some works, in a file that is written after each."""
    import contenders
    import torch

    library = contenders.Library(library)
    flush = torch.empty(CACHE, dtype=torch.uint8, device="cuda")
    found = {"limits": limits(flush, library), "records": []}
    for work in chosen:
        found["records"].append(measured(work, library, flush, found["limits"]))
        pathlib.Path(path).write_text(json.dumps(found))


def measured_apart(chosen, build, seconds):
    """The same in a process of its own, since a kernel that faults takes its context along: what it left, and its verdict."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "found")
        names = [word for work in chosen for word in ("--only", work.name)]
        said = run([sys.executable, __file__, *names, "--json", path, "--build", build], seconds)
        return json.loads(path.read_text()) if path.exists() else {"limits": {}, "records": []}, said


def arguments(given=None):
    parser = argparse.ArgumentParser(prog="./dev gpu", description=__doc__.split("\n\n")[0])
    parser.add_argument("filter", nargs="?", default="", help="a regular expression: which works")
    parser.add_argument("--json", metavar="FILE", help="write the records there")
    parser.add_argument("--plot", metavar="FILE", help="draw them there, as SVG")
    parser.add_argument("--markdown", metavar="FILE", help="write them there as a table")
    parser.add_argument("--only", action="append", help=argparse.SUPPRESS)  # measure these, here
    parser.add_argument("--no-tests", action="store_true", help="only the works")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build/gpu", help=argparse.SUPPRESS)
    return parser.parse_args(given)


def written(options, result):
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    if options.markdown:
        lines = [*report.heading(result), *report.markdown(result["records"])]
        lines += ["", "| test | outcome |", "|---|---|", *(f"| {who} | {said} |" for who, said in result["tests"])]
        pathlib.Path(options.markdown).write_text("\n".join(lines) + "\n")
    if options.plot:
        title = f"regroup on {result['machine']['processor']}, {result['machine']['date']}"
        pathlib.Path(options.plot).write_text("\n".join(report.plot(result["records"], title)) + "\n")


def main(given=None):
    options = arguments(given)
    if options.only:
        return measure(works.works(" ".join(options.only)), options.build / "lib/libgpu_ours.so", options.json)
    began = time.monotonic()
    left = lambda of: of - (time.monotonic() - began)
    try:
        chosen = [w for w in ALL if re.search(options.filter, w.name)] or works.works(options.filter)
    except (works.NoSuchWork, re.error) as e:
        print(f"gpu: {e}", file=sys.stderr)
        return 2
    if not (device := clocks()):
        print("gpu: no NVIDIA GPU answers (nvidia-smi); `./dev test` holds what a CPU can", file=sys.stderr)
        return 1
    date = time.strftime("%Y-%m-%d")
    result = {"machine": {"processor": device["name"], "date": date, "commit": commit(), "before": device}}
    result |= {"tests": [], "limits": {}, "records": [], "left_out": []}
    programs = sorted([*options.build.glob("bin/cuda_*"), *options.build.glob("bin/gpu_*")])
    for who, said in [] if options.no_tests else tests(programs, lambda: left(TESTS)):
        print(f"{who:40} {said}", flush=True)
        result["tests"].append([who, said])
    failed = [who for who, said in result["tests"] if said != "passed"]
    written(options, result)
    for _, group in itertools.groupby(chosen, key=lambda work: work.verb):
        group = list(group)
        found, said = measured_apart(group, options.build, max(1.0, left(BUDGET)))
        result["limits"] |= {name: {"": figure} for name, figure in found["limits"].items()}
        result["records"] += found["records"]
        result["left_out"] += [[work.name, said] for work in group[len(found["records"]) :]]
        for r in found["records"]:
            print("\n".join(report.lines_of(r)), flush=True)
        written(options, result)
    result["machine"]["after"] = clocks()
    written(options, result)
    for name, why in result["left_out"]:
        print(f"left out: {name}: {why}")
    print(f"{len(result['tests']) - len(failed)} passed, {len(failed)} failed" + "".join(f"; {f}" for f in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
