# SPDX-License-Identifier: Apache-2.0
"""The works: their names, inputs, float64 references, what a call amounts to, and which limit of the machine bounds it.

A work is `verb/what/type/shape`. Any name of that form can be run, in the lists below or not: shapes are read from it.
"""

import dataclasses
import math
import re

import numpy as np

K, M = 1 << 10, 1 << 20


class NoSuchWork(ValueError):
    pass


def count(text):
    return int(text.rstrip("KM")) * {"K": K, "M": M}.get(text[-1], 1)


@dataclasses.dataclass(frozen=True)
class Work:
    verb: str
    what: str
    type: str
    shape: str

    @staticmethod
    def named(name):
        if not re.fullmatch(r"\w+/\w+/(fp64|fp32|fp16|bf16)/\w+", name):
            raise NoSuchWork(f"a work is verb/what/type/shape, such as softmax/rows/fp32/4096x1024; got {name}")
        return Work(*name.split("/"))

    @property
    def name(self):
        return f"{self.verb}/{self.what}/{self.type}/{self.shape}"

    @property
    def itemsize(self):
        return {"fp64": 8, "fp32": 4}.get(self.type, 2)

    @property
    def rows(self):
        """(rows, columns) of 4096x1024, (1, n) of 64M; segments of N_of_M too. Columns are all extents but the first."""
        parts = self.extents
        return (1, parts[0]) if len(parts) == 1 else (parts[0], math.prod(parts[1:]))

    @property
    def extents(self):
        return tuple(count(p) for p in self.shape.split("_")[0].split("x"))

    @property
    def summed(self):
        """The axes that reduce_axes sums: of a matrix its rows, of images x channels x height x width all but channels."""
        return (0,) if len(self.extents) == 2 else (0, 2, 3)

    @property
    def attention(self):
        """(heads, key heads, queries, keys, d) of h32_kv8_n32768_d128."""
        given = {letters: count(n) for letters, n in re.findall(r"([a-z]+)(\d+[KM]?)", self.shape)}
        heads, keys = given.get("h", 8), given.get("n", 1024)
        queries = given.get("q", 1 if self.verb == "decode" else keys)
        return heads, given.get("kv", heads), queries, keys, given.get("d", 64)

    @property
    def page(self):
        """How many keys of decode/paged lie in a row: p16."""
        return count(re.search(r"_p(\d+)", self.shape + "_p16")[1])

    @property
    def kept(self):
        """How many of a row top_k/rows keeps: k50."""
        return count(re.search(r"_k(\d+)", self.shape + "_k50")[1])

    @property
    def window(self):
        """How many keys a query of attention/window sees, itself the last: w1024."""
        return count(re.search(r"_w(\d+[KM]?)", self.shape + "_w1024")[1])


def seen_by_window(work):
    """(the keys that any query of attention/window sees, which query sees which of these); all keys and no mask of others.

    What a caller gives who knows no window: a slice of the keys, which costs nothing, and a mask. One query needs none."""
    if work.what != "window":
        return slice(None), None
    _, _, q, n, _ = work.attention
    first = max(0, n - q + 1 - work.window)
    behind = (n - q + np.arange(q))[:, None] - np.arange(first, n)[None, :]
    return slice(first, n), None if q == 1 else (behind >= 0) & (behind < work.window)


def works(text):
    return [Work.named(name) for name in text.split()]


# Every work of a full run, what there is a figure to reach for first.
ALL = works("""
reduce/log_sum_exp/fp32/64M reduce/log_sum_exp_scalar/fp32/64M
softmax/rows/fp32/4096x1024 softmax/rows/fp32/512x32000 softmax/rows/fp32/1x64M
softmax/rows/bf16/4096x1024 softmax/rows/bf16/512x32000 softmax/rows/fp16/4096x1024 softmax/rows/fp16/512x32000
cross_entropy/rows/fp32/4096x1024 cross_entropy/rows/fp32/512x32000 scan/plus/fp32/64M
attention/full/fp32/h8_n1024_d64 attention/causal/fp32/h8_n1024_d64 attention/full/fp32/h8_n4096_d64
attention/causal/fp32/h8_n4096_d64 attention/full/fp32/h8_n4096_d128 attention/causal/fp32/h8_n4096_d128
attention/full/bf16/h8_n1024_d64 attention/full/bf16/h8_n4096_d64 attention/causal/bf16/h8_n4096_d64
attention/full/bf16/h8_n4096_d128 attention/causal/bf16/h8_n4096_d128
attention/full/fp16/h8_n4096_d64 attention/causal/fp16/h8_n4096_d64 attention/full/fp16/h8_n4096_d128
decode/full/fp32/h32_n32768_d128 decode/full/bf16/h32_n32768_d128 decode/full/fp16/h32_n32768_d128
decode/full/fp32/h32_kv8_n32768_d128 decode/full/bf16/h32_kv8_n32768_d128 decode/full/fp16/h32_kv8_n32768_d128
decode/full/bf16/h32_kv8_n32768_d128_q5 decode/full/bf16/h32_kv8_n32768_d128_q16 decode/paged/bf16/h32_kv8_n32768_d128
reduce/log_sum_exp/fp32/512M reduce/log_sum_exp/bf16/64M reduce/log_sum_exp/fp16/64M
reduce/plus/fp32/64M reduce/moments/fp32/16M reduce/argmax/fp32/16M reduce/minmax/fp32/16M reduce/affine/fp32/16M
reduce/longest_run/fp32/16M reduce/min_plus/fp64/4M reduce/fanout/fp32/16M
softmax/rows/fp64/4096x1024 softmax/rows/fp32/4Mx1 softmax/rows/fp32/256Kx17 softmax/rows/fp32/256Kx128
softmax/rows/fp32/64Kx300 softmax/rows/bf16/256Kx128 logsumexp/rows/fp32/256Kx128 softmax/rows/fp32/100x1000003
softmax/strided/fp32/4096x1024 softmax/in_place/fp32/4096x1024 softmax/vectors/fp32/4096x1024
log_softmax/rows/fp32/4096x1024 log_softmax/rows/bf16/512x32000 log_softmax/rows/fp32/256Kx17
logsumexp/rows/fp32/4096x1024 logsumexp/rows/fp32/256Kx17 logsumexp/wide/fp32/512x32000
logsumexp/rows/fp32/1x64M logsumexp/rows/bf16/512x32000
cross_entropy/rows/bf16/512x32000 cross_entropy/rows/fp16/512x32000 cross_entropy/rows/fp32/256Kx17
top_k/rows/fp32/32x128256_k5 top_k/rows/fp32/32x128256_k50 top_k/rows/fp32/32x128256_k256
reduce_axes/plus/fp32/1024x4096 reduce_axes/plus/fp32/100000x400 reduce_axes/plus/fp32/1Mx32 reduce_axes/plus/fp32/4Mx8
reduce_axes/plus/fp32/32x64x56x56 scan_axes/plus/fp32/4Mx4 scan_axes/plus/fp32/1Mx20
scan_axes/plus/fp32/4096x4096 scan_axes/plus/fp32/100000x400 scan_axes/log_sum_exp/fp32/1024x4096
scan/affine/fp32/16M scan/log_sum_exp/fp32/16M reduce_segments/plus/fp32/16M_of_1000 reduce_segments/plus/fp32/16M_of_20
softmax_segments/rows/fp32/16M_of_20 softmax_segments/rows/fp32/16M_of_1000
attention/full/fp32/h8_n2000_d80 attention/causal/fp32/h8_n2000_d80
attention/window/fp32/h8_q64_n32768_d64_w1024 attention/window/bf16/h8_q1_n32768_d128_w1024
math/exp/fp32/16K math/exp2/fp32/16K math/log/fp32/16K math/exp/fp64/16K math/exp2/fp64/16K math/log/fp64/16K
threads/plus/fp32/1K threads/plus/fp32/8K threads/plus/fp32/64K threads/plus/fp32/256K threads/plus/fp32/1M
threads/log_sum_exp/fp32/1K threads/log_sum_exp/fp32/8K threads/log_sum_exp/fp32/64K threads/log_sum_exp/fp32/1M
""")

# The same at sizes that take seconds, for developing; figures are of caches more than of memory.
SMALLER = {
    "512M": "4M",
    "64M": "2M",
    "16M": "1M",
    "4096x1024": "512x1024",
    "512x32000": "32x32000",
    "32x128256_k5": "8x32000_k5",
    "32x128256_k50": "8x32000_k50",
    "32x128256_k256": "8x32000_k256",
    "1x64M": "1x2M",
    "4Mx1": "256Kx1",
    "256Kx17": "32Kx17",
    "256Kx128": "8Kx128",
    "64Kx300": "4Kx300",
    "100x1000003": "3x1000003",
    "16M_of_1000": "1M_of_1000",
    "16M_of_20": "1M_of_20",
    "1024x4096": "1024x512",
    "4096x4096": "512x512",
    "100000x400": "4096x400",
}


def smaller(work):
    shape = SMALLER.get(work.shape, re.sub(r"n32768", "n4096", re.sub(r"n4096", "n512", work.shape)))
    return dataclasses.replace(work, shape=shape)


def chosen(pattern, quick=False):
    """The works whose name a regular expression finds; a complete name that is in no list is a work of its own."""
    listed = [w for w in ALL if not pattern or re.search(pattern, w.name)]
    if not listed and pattern and re.fullmatch(r"\w+/\w+/\w+/\w+", pattern):
        return [Work.named(pattern)]
    return list(dict.fromkeys(map(smaller, listed))) if quick else listed


# ---- 16-bit floats, which NumPy has half of


def narrowed(x, type):
    """float32 as the raw elements of a type."""
    if type == "bf16":
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return x.astype({"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}[type], copy=False)


def widened(raw, type):
    """Raw elements as float32, or float64 for fp64."""
    if type == "bf16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return raw if type == "fp64" else raw.astype(np.float32, copy=False)


def stored_type(type):
    return {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "bf16": np.uint16}[type]


# ---- amounts and limits


def amount(work):
    """(what a call amounts to, unit of the figure): bytes that must move, or floating-point operations."""
    if work.verb == "attention":
        h, _, q, n, d = work.attention
        seen = {"causal": n / 2, "window": work.window}.get(work.what, n)
        return 4 * h * q * seen * d, "GFLOP/s"
    if work.verb == "decode":
        _, kv, _, n, d = work.attention
        return 2 * kv * n * d * work.itemsize, "GB/s"
    rows, columns = work.rows
    n = rows * columns
    if work.verb == "math":
        return n, "Gelements/s"
    element = {"affine": 8, "min_plus": 32, "longest_run": 1}.get(work.what, work.itemsize)
    writes = work.verb in WRITES
    return n * element * (2 if writes else 1), "GB/s"


WRITES = ("softmax", "softmax_segments", "log_softmax", "cross_entropy", "scan", "scan_axes")  # as much as they read
LONG_ROW = 1 << 18  # elements: longer rows leave a core's cache between the two sweeps of a softmax


def limit(work, threads, seconds):
    """(name, figure) of the machine's limit for a work, from the seconds of the probes beside it; (None, None) if none.

    Rows too long for a core's cache must be read twice: their limit is reading and then copying."""
    size, _ = amount(work)
    rate = lambda t: size / t / 1e9
    if work.verb == "attention":
        peaks = {name: threads * 2**30 / t / 1e9 for name, t in seconds.items()}
        return max(peaks.items(), key=lambda peak: peak[1], default=(None, None))
    reads = [t for name, t in seconds.items() if name.startswith("read")]
    copies = {name: t for name, t in seconds.items() if name.startswith("copy")}
    if work.verb in WRITES and copies:
        name, t = min(copies.items(), key=lambda copy: copy[1])
        if not re.search("scan|segments", work.verb) and work.rows[1] > LONG_ROW and reads:
            return "read, then " + name, rate(t + min(reads))
        return name, rate(t)
    if reads:
        return "read", rate(min(reads))
    return None, None
