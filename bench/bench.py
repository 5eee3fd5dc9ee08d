# SPDX-License-Identifier: Apache-2.0
"""./dev bench [FILTER] [--json FILE] [--plot FILE] [--quick] ...: every work whose name the regular expression FILTER
finds, ours beside the machine's limit and every peer, in one run. See README.md here.

A round times each contender once: the C++ programs in one process, each peer of PyPI in its own, stopped while it is
not its turn. Figures are medians over rounds; who is far behind in the first is not asked again. All read the same inputs
and are compared with one float64 reference.
"""

import argparse
import ctypes
import json
import os
import pathlib
import re
import sys
import tempfile

import numpy as np

import bits
import machine
import memory
import peers
import references
import report
import works
from processes import PROGRAMS, Busy, Worker, run_program

PR_SET_THP_DISABLE = 41  # of Linux's prctl


def put(given, directory):
    """Inputs where every process reads them."""
    for name, array in given.items():
        array.tofile(pathlib.Path(directory) / name)


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

    def gather(self, work, given):
        """{who: result} of everybody who can do a work; nothing is timed."""
        put(given, self.directory)
        run_program(PROGRAMS[work.verb][0], work, self.threads, self.directory, 0.001, "--keep")
        for worker in self.workers:
            if not worker.cannot:
                worker.ask(prepare=work.name, keep=True)
        return dict(self.results(work))

    def measure(self, work, expected, rounds, seconds):
        """The record of a work whose inputs lie in the directory."""
        size, unit = works.amount(work)
        samples, limits, errors, notes, absent, behind, busy = {}, [], {}, {}, {}, set(), Busy()
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
                    mode = "--keep" if turn == 0 else None
                    seconds_of |= run_program(program, work, self.threads, self.directory, seconds, mode, behind)
                except RuntimeError as e:
                    absent[program] = str(e)
                if turn == 0:
                    errors |= {who: references.error(work, result, expected) for who, result in self.results(work)}
            for worker in ready:
                if worker.name in behind:
                    continue
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
            if turn == 0:
                behind = report.far_behind(samples)
        busy.look()
        if work.what == "causal":
            for who, note in self.whole_squares(work, ready, seconds).items():
                notes[who] = "; ".join(filter(None, [notes.get(who), note]))
        for worker in ready:
            worker.ask(forget=True)
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


def arguments(given=None):
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "filter", nargs="?", help="a regular expression; a complete work name that is in no list runs too"
    )
    parser.add_argument("--json", metavar="FILE", help="write the records there")
    parser.add_argument("--plot", metavar="FILE", help="draw them there, as SVG")
    parser.add_argument("--markdown", metavar="FILE", help="write them there as a table")
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="measure nothing: take the records of that JSON file, ranked anew"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: to see that it works")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}", help="numbers of threads, as in 1,2")
    parser.add_argument("--rounds", type=int, help="3, or 1 with --quick")
    parser.add_argument("--seconds", type=float, help="for each contender in a round; 0.2, or 0.02 with --quick")
    parser.add_argument("--small-pages", action="store_true", help="inputs and results in pages of 4 KiB, not huge ones")
    parser.add_argument("--peers", help="a regular expression: which of PyPI's to ask; `none` for nobody")
    parser.add_argument("--list", action="store_true", help="name the works and stop")
    return parser.parse_args(given)


def measured(options):
    chosen = [] if options.filter in ("bits", "memory") else works.chosen(options.filter, options.quick)
    with_bits, with_memory = options.filter in (None, "bits"), options.filter in (None, "memory")
    if not (chosen or with_bits or with_memory):
        raise works.NoSuchWork(f"no work's name matches `{options.filter}`; ./dev bench --list names them all")
    if options.list:
        print("\n".join(w.name for w in chosen))
        return None
    threads_list = list(dict.fromkeys(int(t) for t in options.threads.split(",")))
    rounds, seconds = options.rounds or (1 if options.quick else 3), options.seconds or (0.02 if options.quick else 0.2)
    wanted = [name for name in peers.ALL if not options.peers or re.search(options.peers, name)]
    if options.small_pages:
        if ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0:  # for everybody who is started from here
            raise works.NoSuchWork("this system gives large pages to whom it likes: --small-pages cannot be had")
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    found = machine.description() | {"target": machine.target(), "small_pages": options.small_pages}
    result = {"machine": found, "versions": machine.versions(), "limits": {}, "records": [], "bits": []}
    print(f"{found['processor']}, {found['cores']} cores, target {found['target']}; {found['compiler']}")
    for name, version in result["versions"].items():
        print(f"  {name}: {version}")
    with tempfile.TemporaryDirectory(prefix="regroup_bench_", dir=shared) as directory:
        if chosen:
            result["limits"] = machine.limits(threads_list, directory, seconds, options.quick)
        for name, by_threads in result["limits"].items():
            print(f"  limit {name}: " + ", ".join(f"{f:.4g} ({t}T)" for t, f in by_threads.items()))
        threads_of = lambda work: [1] if work.verb == "math" else threads_list
        numbers = {t for work in chosen for t in threads_of(work)} | ({1, 2} if with_bits else set())
        sessions = {threads: Session(threads, wanted, directory) for threads in numbers}
        try:
            for work in chosen:
                given = references.inputs(work)
                put(given, directory)
                expected = references.reference(work, given)
                del given
                for threads in threads_of(work):
                    r = sessions[threads].measure(work, expected, rounds, seconds)
                    result["records"].append(r)
                    if options.json:  # an hour's work does not hang on its last minute
                        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
                    print("\n".join(report.lines_of(r)), flush=True)
                for path in pathlib.Path(directory).iterdir():
                    path.unlink()
            if with_bits:
                result["bits"] = bits.table(sessions[1], sessions[2], options.quick)
                print("\n".join(bits.lines_of(result["bits"])))
            if with_memory:
                result["memory"] = memory.table(threads_list, directory, options.quick, wanted)
                print("\n".join(memory.lines_of(result["memory"])))
        finally:
            for session in sessions.values():
                session.end()
    return result


def main(given=None):
    options = arguments(given)
    try:
        if options.source:
            result = json.loads(pathlib.Path(options.source).read_text())
            result["records"] = [report.ranked(r) for r in result["records"]]
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
        records, found = result["records"], result.get("memory", [])  # older files have no memory
        tables = report.markdown(records), report.two_by_two(records), bits.markdown(result["bits"]), memory.markdown(found)
        texts = ("\n".join(lines).strip() for lines in (report.heading(result), *tables))
        pathlib.Path(options.markdown).write_text("\n\n".join(filter(None, texts)) + "\n")
    if options.plot:
        title = f"regroup on {result['machine']['processor']}, {result['machine']['date']}"
        pathlib.Path(options.plot).write_text("\n".join(report.plot(result["records"], title)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
