# SPDX-License-Identifier: Apache-2.0
"""The processes of a run: the C++ programs, the peers in Python, and whoever else uses the machine."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import works

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "release"
PROGRAMS = {
    "math": ("math", "math_native"),
    "reduce": ("reduce", "reduce_native", "reduce_fast"),
    "reduce_axes": ("columns",),
    "scan_axes": ("columns",),
    "scan": ("scan",),
    "top_k": ("top_k",),
    "reduce_segments": ("scan",),
    "attention": ("attention",),
    "decode": ("attention",),
    "threads": ("threads",),
    "softmax": ("rows",),
    "softmax_segments": ("rows",),
    "log_softmax": ("rows",),
    "logsumexp": ("rows",),
    "cross_entropy": ("rows",),
    "limit": ("limits",),
}


PATIENCE = 900  # seconds that a peer may take for one answer: compiling, or one call at the largest size
FLAGS = {"native": ", -march=native", "fast": ", -Ofast -march=native"}  # of a program's name, in those of its contenders


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
            start_new_session=True,  # a library's own processes are ended with it
        )

    def start(self):
        """Waits until it has imported its library."""
        self.cannot = self.answer().get("cannot")

    def answer(self):
        patience = threading.Timer(PATIENCE, self.kill)
        patience.start()
        line = self.process.stdout.readline()
        patience.cancel()
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line) if line else {"cannot": f"its process ended, or said nothing for {PATIENCE} seconds"}

    def ask(self, **command):
        try:
            self.process.send_signal(signal.SIGCONT)
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"cannot": "its process ended"}
        return self.answer()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self):
        self.kill()
        self.process.communicate()


def literally(text):
    """A regular expression that finds this text, in Google Benchmark's dialect."""
    return re.sub(r"([][.^$*+?(){}|\\])", r"\\\1", text)


def run_program(program, work, threads, directory, seconds, mode=None, left_out=()):
    """Everybody in one C++ program but who is left out: {who: seconds a call}, with mode `--keep` their results beside the
    inputs, with `--memory` {who: bytes} by which resident memory peaks in the first call. Raises NoSuchWork with the
    program's own sentence, RuntimeError where it crashed."""
    binary = BUILD / "bin" / f"bench_{program}"
    suffix = FLAGS.get(program.rpartition("_")[2], "")
    without = "|".join(literally(who.removesuffix(suffix)) for who in left_out if who.endswith(suffix))
    done = subprocess.run(
        [binary, work.name, str(threads), directory]
        + ([mode] if mode else [])
        + ([f"--benchmark_filter=-^({without})/real_time$"] if without else [])
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
    if mode == "--memory":
        return {who: int(size) for size, who in (line.split("\t") for line in done.stdout.splitlines())}
    if suffix:
        for path in pathlib.Path(directory).glob("result of *"):
            if not path.name.endswith((suffix, ".npy")):
                path.rename(f"{path}{suffix}")
    timed = json.loads(done.stdout)["benchmarks"] if done.stdout else []  # nothing, where all are left out
    found = {b["name"].removesuffix("/real_time"): b["real_time"] / 1e9 for b in timed}
    again = ("by hand", "limit ") if suffix else ()  # the same, once more
    return {who + suffix: t for who, t in found.items() if not who.startswith(again)}
