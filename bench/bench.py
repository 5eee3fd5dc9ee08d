# SPDX-License-Identifier: Apache-2.0
"""./dev bench [FILTER] [--json FILE] [--plot FILE] [--quick] [--threads 1,2] [--rounds 3]: every work that the regular
expression FILTER finds, ours beside the machine's limit and everybody's peers, in one run. See README.md here.

A round times each contender once: the C++ programs in one process, each peer of PyPI in its own, stopped while it is not
its turn. Figures are medians over rounds. All read the same inputs; all results are compared with one float64 reference.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import bits
import peers
import report
import works

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "release"
PROGRAMS = {
    "reduce": ("reduce", "reduce_native"),
    "scan": ("scan",),
    "reduce_segments": ("scan",),
    "attention": ("attention",),
    "decode": ("attention",),
    "threads": ("threads",),
    "softmax": ("rows",),
    "log_softmax": ("rows",),
    "logsumexp": ("rows",),
    "cross_entropy": ("rows",),
    "limit": ("limits",),
}


class Busy:
    """The share of the machine that other programs use, looked at while ours stand still."""

    @staticmethod
    def ticks():
        fields = [int(f) for f in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        idle = fields[3] + fields[4]
        return sum(fields[:8]) - idle, sum(fields[:8])  # steal counts as used

    def __init__(self):
        self.shares = []

    def look(self, seconds=0.15):
        used, all = self.ticks()
        time.sleep(seconds)
        used_then, all_then = self.ticks()
        self.shares.append((used_then - used) / max(all_then - all, 1))


def environment(threads):
    """One number of threads for everybody's pools, and no choice of kernels left over from the caller's settings."""
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "OMP_", "MKL_"))}
    settings |= {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "CUDA_VISIBLE_DEVICES": "",
        "TORCHINDUCTOR_CACHE_DIR": str(BUILD.parent / "bench" / "torch"),
        "ONEDNN_DEFAULT_FPMATH_MODE": "STRICT",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return settings


def pinned(threads):
    """Where fewer threads than cores are asked for, the process gets no more cores."""
    cores = sorted(os.sched_getaffinity(0))
    return lambda: os.sched_setaffinity(0, set(cores[:threads])) if threads < len(cores) else None


class Worker:
    """A peer in its process, stopped except while it answers."""

    def __init__(self, name, threads, directory):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, HERE / "peers.py", name, str(threads), directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(threads),
            preexec_fn=pinned(threads),
        )

    def start(self):
        """Waits until it has imported its library."""
        self.cannot = self.answer().get("cannot")

    def answer(self):
        line = self.process.stdout.readline()
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line) if line else {"cannot": "its process ended"}

    def ask(self, **command):
        try:
            self.process.send_signal(signal.SIGCONT)
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"cannot": "its process ended"}
        return self.answer()

    def end(self):
        self.process.kill()
        self.process.communicate()


def run_program(program, work, threads, directory, seconds, keep):
    """Everybody in one C++ program: {who: seconds a call}, and with `keep` their results beside the inputs. Raises
    NoSuchWork with the program's own sentence, RuntimeError where it crashed."""
    binary = BUILD / "bin" / f"bench_{program}"
    done = subprocess.run(
        [binary, work.name, str(threads), directory]
        + ["--keep"] * keep
        + [f"--benchmark_min_time={seconds}", "--benchmark_enable_random_interleaving=true", "--benchmark_format=json"],
        capture_output=True,
        text=True,
        env=environment(threads),
        preexec_fn=pinned(threads),
        check=False,
    )
    said = done.stderr.strip().splitlines()
    if done.returncode == 2 and said:
        raise works.NoSuchWork(said[-1].removeprefix(f"{binary}: "))
    if done.returncode != 0:
        raise RuntimeError(f"bench_{program} ended with {done.returncode}")
    suffix = ", -march=native" if program.endswith("_native") else ""
    if suffix:  # the same loops by hand, once more
        for path in pathlib.Path(directory).glob("result of *"):
            if not path.name.endswith((suffix, ".npy")):
                path.rename(f"{path}{suffix}")
    found = {b["name"].removesuffix("/real_time"): b["real_time"] / 1e9 for b in json.loads(done.stdout)["benchmarks"]}
    return {who + suffix: t for who, t in found.items() if not (suffix and who.startswith(("by hand", "limit ")))}


class Session:
    """The processes of one number of threads, and the directory they share."""

    def __init__(self, threads, wanted, directory):
        self.threads, self.directory = threads, directory
        self.workers = [Worker(name, threads, directory) for name in wanted]  # they import side by side
        for worker in self.workers:
            worker.start()

    def results(self, work):
        """who -> result, of those that left one; the files are removed."""
        for path in sorted(pathlib.Path(self.directory).glob("result of *")):
            who = path.name.removeprefix("result of ")
            if who.endswith(".npy"):
                yield who.removesuffix(".npy"), np.load(path)
            elif path.stat().st_size:
                yield who, self.decoded(work, path)
            path.unlink()

    @staticmethod
    def decoded(work, path):
        if work.verb in ("reduce", "threads"):
            return np.fromfile(path, np.float64)
        if work.verb == "logsumexp":
            return np.fromfile(path, np.float64 if work.type == "fp64" else np.float32)
        return works.widened(np.fromfile(path, works.stored_type(work.type)), work.type)

    def put(self, given):
        for name, array in given.items():
            array.tofile(pathlib.Path(self.directory) / name)

    def gather(self, work, given):
        """{who: result} of everybody who can do a work; nothing is timed."""
        self.put(given)
        run_program(PROGRAMS[work.verb][0], work, self.threads, self.directory, 0.001, keep=True)
        for worker in self.workers:
            if not worker.cannot:
                worker.ask(prepare=work.name, keep=True)
        return dict(self.results(work))

    def measure(self, work, rounds, seconds):
        size, unit = works.amount(work)
        given = works.inputs(work)
        self.put(given)
        expected = works.reference(work, given)
        del given
        samples, limits, errors, notes, absent, busy = {}, [], {}, {}, {}, Busy()
        ready = []
        for worker in self.workers:
            answer = {"cannot": worker.cannot} if worker.cannot else worker.ask(prepare=work.name, keep=True)
            if "cannot" in answer:
                absent[worker.name] = answer["cannot"]
            else:
                ready.append(worker)
                if answer.get("note"):
                    notes[worker.name] = answer["note"]
        for turn in range(rounds):
            busy.look()
            seconds_of = {}
            for program in PROGRAMS[work.verb]:
                try:
                    seconds_of |= run_program(program, work, self.threads, self.directory, seconds, keep=turn == 0)
                except RuntimeError as e:
                    absent[program] = str(e)
                if turn == 0:
                    errors |= {who: works.error(work, result, expected) for who, result in self.results(work)}
            for worker in ready:
                answer = worker.ask(time=seconds)
                if "seconds" in answer:
                    seconds_of[worker.name] = answer["seconds"]
                else:
                    absent[worker.name] = answer["cannot"]
            probes = {who.removeprefix("limit "): t for who, t in seconds_of.items() if who.startswith("limit ")}
            name, figure = works.limit(work, self.threads, probes)
            if figure:
                limits.append((name, figure))
            for who, t in seconds_of.items():
                if not who.startswith("limit "):
                    samples.setdefault(who, []).append(size / t / 1e9)
        busy.look()
        if work.what == "causal":
            notes |= self.whole_squares(work, ready, seconds)
        for worker in ready:
            worker.ask(forget=True)
        for path in pathlib.Path(self.directory).iterdir():
            path.unlink()
        return report.record(
            work.name, self.threads, unit, samples, limits, errors, notes, absent, float(np.median(busy.shares))
        )

    def whole_squares(self, work, ready, seconds):
        """Who takes as long for a causal mask as without one: seen, not believed."""
        full, notes = works.Work(work.verb, "full", work.type, work.shape), {}
        for worker in ready:
            seconds_of = []
            for each in (full, work):
                worker.ask(prepare=each.name)
                seconds_of.append(worker.ask(time=seconds).get("seconds"))
            if None not in seconds_of and seconds_of[1] > 0.8 * seconds_of[0]:
                share = seconds_of[1] / seconds_of[0]
                notes[worker.name] = f"computes the whole square ({share:.2f} of its time without a mask)"
        return notes

    def end(self):
        for worker in self.workers:
            worker.end()


def machine():
    """What the figures are of: the processor, its caches and the versions of everything."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    found = lambda key: next((m[1].strip() for m in [re.search(rf"^{key}\s*:(.*)$", text, re.M)] if m), "unknown")
    flags = found("flags").split()
    wanted = ("avx2", "fma", "avx512f", "avx512bw", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16")
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
    head = subprocess.run(
        ["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "processor": found("model name"),
        "family": found("cpu family"),
        "model": found("model"),
        "cores": len(os.sched_getaffinity(0)),
        "instruction_sets": [f for f in wanted if f in flags],
        "system": f"{platform.system()} {platform.release()}",
        "compiler": compiler,
        "commit": head.stdout.strip(),
        "date": time.strftime("%Y-%m-%d"),
    }


def versions():
    """Peer -> version, of Python's; the reason where one is not there."""
    from importlib import metadata

    found = {"Python": platform.python_version()}
    for peer in peers.ALL.values():
        try:
            found[peer.package] = metadata.version(peer.package)
        except metadata.PackageNotFoundError:
            found[peer.package] = "not installed"
    absences = BUILD.parent / "bench" / "absent.json"
    if absences.exists():
        found |= {name: f"cannot be had: {why}" for name, why in json.loads(absences.read_text()).items()}
    for package in ("libtbb-dev", "libthrust-dev", "libeigen3-dev", "libopenblas-dev", "libdnnl-dev", "libxnnpack-dev"):
        if shutil.which("dpkg-query"):
            shown = subprocess.run(
                ["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=False
            )
            found[package] = shown.stdout or "not installed"
    return found


def machine_limits(threads_list, directory, seconds, quick):
    """name -> {threads: figure}: the machine on its own, before anybody else runs."""
    work = works.Work("limit", "machine", "fp32", "4M" if quick else "64M")
    np.zeros(works.count(work.shape), np.float32).tofile(pathlib.Path(directory) / "x")
    found = {}
    for threads in threads_list:
        for who, t in run_program("limits", work, threads, directory, seconds, keep=False).items():
            name = who.removeprefix("limit ")
            size = works.count(work.shape) * 4 * (2 if name.startswith("copy") else 1)
            moved = name == "read" or name.startswith("copy")
            figure = size / t / 1e9 if moved else threads * 2**30 / t / 1e9
            found.setdefault(name + (", GB/s" if moved else ", GFLOP/s"), {})[str(threads)] = figure
    (pathlib.Path(directory) / "x").unlink()
    return found


def arguments(given=None):
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "filter", nargs="?", help="a regular expression; a complete work name that is in no list runs too"
    )
    parser.add_argument("--json", metavar="FILE", help="write the records there")
    parser.add_argument("--plot", metavar="FILE", help="draw them there, as SVG")
    parser.add_argument("--markdown", metavar="FILE", help="write them there as a table")
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="measure nothing: take the records of that JSON file"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: to see that it works")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}", help="numbers of threads, as in 1,2")
    parser.add_argument("--rounds", type=int, help="3, or 1 with --quick")
    parser.add_argument("--seconds", type=float, help="for each contender in a round; 0.2, or 0.02 with --quick")
    parser.add_argument("--peers", help="a regular expression: which of PyPI's to ask; `none` for nobody")
    parser.add_argument("--list", action="store_true", help="name the works and stop")
    return parser.parse_args(given)


def measured(options):
    chosen = [] if options.filter == "bits" else works.chosen(options.filter, options.quick)
    with_bits = options.filter in (None, "bits")
    if not chosen and not with_bits:
        raise works.NoSuchWork(f"no work's name matches `{options.filter}`; ./dev bench --list names them all")
    if options.list:
        print("\n".join(w.name for w in chosen))
        return None
    threads_list = list(dict.fromkeys(int(t) for t in options.threads.split(",")))
    rounds, seconds = options.rounds or (1 if options.quick else 3), options.seconds or (0.02 if options.quick else 0.2)
    wanted = [name for name in peers.ALL if not options.peers or re.search(options.peers, name)]
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    result = {"machine": machine(), "versions": versions(), "limits": {}, "records": [], "bits": []}
    print(f"{result['machine']['processor']}, {result['machine']['cores']} cores; {result['machine']['compiler']}")
    for name, version in result["versions"].items():
        print(f"  {name}: {version}")
    with tempfile.TemporaryDirectory(prefix="regroup_bench_", dir=shared) as directory:
        result["limits"] = machine_limits(threads_list, directory, seconds, options.quick)
        for name, by_threads in result["limits"].items():
            print(f"  limit {name}: " + ", ".join(f"{f:.4g} ({t}T)" for t, f in by_threads.items()))
        numbers = list(dict.fromkeys(threads_list + ([1, 2] if with_bits else [])))
        sessions = {threads: Session(threads, wanted, directory) for threads in numbers}
        try:
            for work in chosen:
                for threads in threads_list:
                    r = sessions[threads].measure(work, rounds, seconds)
                    result["records"].append(r)
                    print("\n".join(report.lines_of(r)), flush=True)
            if with_bits:
                result["bits"] = bits.table(sessions[1], sessions[2], options.quick)
                print("\n".join(bits.lines_of(result["bits"])))
        finally:
            for session in sessions.values():
                session.end()
    return result


def main(given=None):
    options = arguments(given)
    try:
        if options.source:
            result = json.loads(pathlib.Path(options.source).read_text())
            if options.filter:
                result["records"] = [r for r in result["records"] if re.search(options.filter, r["work"])]
                if not result["records"]:
                    raise works.NoSuchWork(f"no work in {options.source} matches `{options.filter}`")
        else:
            result = measured(options)
    except (works.NoSuchWork, re.error) as e:
        print(f"bench: {e}", file=sys.stderr)
        return 2
    if result is None:
        return 0
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    if options.markdown:
        pathlib.Path(options.markdown).write_text(
            "\n".join([*report.markdown(result["records"]), "", *bits.markdown(result["bits"])]) + "\n"
        )
    if options.plot:
        title = f"regroup on {result['machine']['processor']}, {result['machine']['date']}"
        pathlib.Path(options.plot).write_text("\n".join(report.plot(result["records"], title)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
