# SPDX-License-Identifier: Apache-2.0
"""./dev bench memory: what attention over 65,536 keys holds at its peak beyond its inputs and output, ours and PyTorch's.
(Others might hold all scores: 16 GiB.) Each in a process of its own: by how much resident memory peaks above what it was
before the first call, less the output, which that call is the first to touch."""

import pathlib

import references
import report
import works
from processes import Worker, run_program

PEER = "PyTorch"


def attention(type, n):
    return works.Work("attention", "full", type, f"h1_n{n}_d64")


def put(work, directory):
    for name, array in references.inputs(work).items():
        array.tofile(pathlib.Path(directory) / name)


def of_peer(type, n, threads, directory):
    """Bytes, or None. Small inputs first, so that neither code nor pools of threads are counted."""
    worker, found = Worker(PEER, threads, directory), None
    try:
        worker.start()
        for keys in () if worker.cannot else (64, n):
            put(attention(type, keys), directory)
            found = worker.ask(memory=attention(type, keys).name).get("bytes")
    finally:
        worker.end()
    return found


def table(threads_list, directory, quick, wanted):
    """The lines: {"work", "threads", "who", "bytes"}."""
    lines = []
    for type in ("fp32", "bf16"):
        work = attention(type, 8192 if quick else 65536)
        heads, _, queries, n, d = work.attention
        for threads in threads_list:
            put(work, directory)
            peaks = run_program("attention", work, threads, directory, 0, mode="--memory")
            if PEER in wanted:
                peaks[PEER] = of_peer(type, n, threads, directory)
            for who, peak in peaks.items():
                if peak is not None and (who == "ours" or report.is_peer(who)) and not who.startswith("limit "):
                    beyond = max(int(peak) - heads * queries * d * work.itemsize, 0)
                    lines.append({"work": work.name, "threads": threads, "who": who, "bytes": beyond})
    return lines


def shown(line):
    return f"{line['bytes'] / works.M:.1f} MiB"


def lines_of(table):
    for line in table:
        yield f"{line['work'] + ', threads: ' + str(line['threads']):48} {line['who']:28} {shown(line):>12}"


def markdown(table):
    if table:
        yield "Memory at the peak of a call, beyond inputs and output."
        yield ""
        yield "| work | threads | who | memory |"
        yield "|---|---|---|---|"
    for line in table:
        yield f"| {line['work']} | {line['threads']} | {line['who']} | {shown(line)} |"
