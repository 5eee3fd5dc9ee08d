# SPDX-License-Identifier: Apache-2.0
"""The peers that PyPI has, each in its own process: `python peers.py PEER THREADS DIRECTORY` answers commands, lines of
JSON: {"prepare": WORK, "keep": true}, {"time": SECONDS}, {"memory": WORK}, {"forget": true}. The other end is Worker in
processes.py."""

import json
import os
import pathlib
import re
import statistics
import sys
import time

import numpy as np

import works
from peer import Cannot, Peer
from peers_graph import Jax, OnnxRuntime, OpenVino
from peers_torch import Torch, TorchCompiled


class NumPy(Peer):
    name, package = "NumPy", "numpy"

    def softmax(self, work):
        self.needs(work, "fp32", "fp64")
        x = self.given(work)
        if work.what == "strided":
            x = x.reshape(x.shape[::-1]).T
        y = x if work.what == "in_place" else np.empty_like(x)

        def call():
            np.subtract(x, x.max(axis=1, keepdims=True), out=y)
            np.exp(y, out=y)
            np.divide(y, y.sum(axis=1, keepdims=True), out=y)

        return call, lambda: y.T if work.what == "strided" else y

    def log_softmax(self, work):
        self.needs(work, "fp32", "fp64")
        x = self.given(work)
        y, w = np.empty_like(x), np.empty_like(x)

        def call():
            np.subtract(x, x.max(axis=1, keepdims=True), out=y)
            np.exp(y, out=w)
            np.subtract(y, np.log(w.sum(axis=1, keepdims=True)), out=y)

        return call, lambda: y

    def logsumexp(self, work):
        self.needs(work, "fp32", "fp64")
        x, y = self.given(work), np.empty(work.rows[0])

        def call():
            m = x.max(axis=1, keepdims=True)
            y[:] = (m + np.log(np.exp(x - m).sum(axis=1, keepdims=True)))[:, 0]

        return call, lambda: y

    def reduce(self, work):
        self.needs(work, "fp32")
        x = self.given(work)[0]
        if work.what == "log_sum_exp":
            return self.logsumexp(work)
        f = {
            "moments": lambda: [x.mean(), x.var()],
            "minmax": lambda: [x.min(), x.max()],
            "argmax": lambda: [x.max(), x.argmax()],
            "plus": lambda: [x.sum()],
        }[work.what]
        return f, lambda: np.array(f(), np.float64)

    def reduce_axes(self, work):
        x, y = self.given(work, "x", *work.extents), np.empty(work.extents[1], np.float32)
        return lambda: np.sum(x, axis=work.summed, out=y), lambda: y

    def scan(self, work):
        x = self.given(work) if work.verb == "scan_axes" else self.given(work)[0]
        y = np.empty_like(x)
        f = {"plus": np.cumsum, "log_sum_exp": np.logaddexp.accumulate}[work.what]
        return lambda: f(x, axis=0, out=y), lambda: y

    scan_axes = scan

    def top_k(self, work):
        x, k, y = self.given(work), work.kept, np.empty((work.rows[0], 2, work.kept), np.float32)

        def call():
            best = np.argpartition(x, -k, axis=1)[:, -k:]
            values = np.take_along_axis(x, best, 1)
            order = np.argsort(-values, axis=1)
            y[:, 0] = np.take_along_axis(values, order, 1)
            y[:, 1] = np.take_along_axis(best, order, 1)

        return call, lambda: y

    def reduce_segments(self, work):
        x, first = self.given(work)[0], np.fromfile(self.directory / "offsets", np.int64)[:-1]
        y = np.empty(len(first), np.float32)
        return lambda: np.add.reduceat(x, first, out=y), lambda: y


ALL = {peer.name: peer for peer in (NumPy, Torch, TorchCompiled, Jax, OnnxRuntime, OpenVino)}


def peak_of(call):
    """Bytes by which resident memory peaks above what it is now."""
    kib = lambda key: int(re.search(rf"^{key}:\s*(\d+)", pathlib.Path("/proc/self/status").read_text(), re.M)[1])
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = kib("VmRSS")
    call()
    return (kib("VmHWM") - before) * 1024


def timed(call, seconds):
    """The median of calls made for about so long, at least one."""
    times, until = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < until:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def serve(name, threads, directory):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints
    say = lambda **answer: print(json.dumps(answer), file=answers, flush=True)
    try:
        peer = ALL[name](threads, directory)
    except Exception as e:  # noqa: BLE001: whatever an import throws is the reason it is absent
        return say(cannot=f"{type(e).__name__}: {e}"[:200])
    say(ready=True)
    call = result = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if "prepare" in command:
                call = result = None
                work = works.Work.named(command["prepare"])
                call, result = peer.prepare(work)
                call()
                if command.get("keep"):
                    np.save(
                        pathlib.Path(directory) / f"result of {name}.npy", np.ascontiguousarray(result()).reshape(-1)
                    )
                say(ready=True, note=peer.note(work))
            elif "memory" in command:
                call, result = peer.prepare(works.Work.named(command["memory"]))
                say(bytes=peak_of(call))
            elif "forget" in command:
                call = result = None
                say(ready=True)
            else:
                say(seconds=timed(call, command["time"]))
        except Cannot as e:
            say(cannot=str(e))
        except Exception as e:  # noqa: BLE001: one peer's failure is a line in the table, not the end of the run
            say(cannot=f"{type(e).__name__}: {' '.join(str(e).split())}"[:200])


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
