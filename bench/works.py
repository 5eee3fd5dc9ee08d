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
        """(rows, columns) of 4096x1024, (1, n) of 64M; segments of N_of_M too."""
        parts = [count(p) for p in self.shape.split("_")[0].split("x")]
        return (1, parts[0]) if len(parts) == 1 else tuple(parts)

    @property
    def attention(self):
        """(heads, key heads, queries, keys, d) of h32_kv8_n32768_d128."""
        given = {letters: count(n) for letters, n in re.findall(r"([a-z]+)(\d+[KM]?)", self.shape)}
        heads, keys = given.get("h", 8), given.get("n", 1024)
        queries = given.get("q", 1 if self.verb == "decode" else keys)
        return heads, given.get("kv", heads), queries, keys, given.get("d", 64)


def works(text):
    return [Work.named(name) for name in text.split()]


# Every work of a full run, the ones that the README's picture shows first.
ALL = works("""
reduce/log_sum_exp/fp32/64M reduce/log_sum_exp_scalar/fp32/64M
softmax/rows/fp32/4096x1024 softmax/rows/fp32/512x32000 softmax/rows/fp32/1x64M
softmax/rows/bf16/4096x1024 softmax/rows/bf16/512x32000 softmax/rows/fp16/4096x1024 softmax/rows/fp16/512x32000
cross_entropy/rows/fp32/4096x1024 cross_entropy/rows/fp32/512x32000 scan/plus/fp32/64M
attention/full/fp32/h8_n1024_d64 attention/causal/fp32/h8_n1024_d64 attention/full/fp32/h8_n4096_d64
attention/causal/fp32/h8_n4096_d64 attention/full/fp32/h8_n4096_d128 attention/causal/fp32/h8_n4096_d128
attention/full/bf16/h8_n1024_d64 attention/full/bf16/h8_n4096_d64 attention/causal/bf16/h8_n4096_d64
attention/full/bf16/h8_n4096_d128 attention/full/fp16/h8_n4096_d64
decode/full/fp32/h32_n32768_d128 decode/full/bf16/h32_n32768_d128 decode/full/fp16/h32_n32768_d128
decode/full/fp32/h32_kv8_n32768_d128 decode/full/bf16/h32_kv8_n32768_d128 decode/full/bf16/h32_kv8_n32768_d128_q5
reduce/log_sum_exp/fp32/512M reduce/log_sum_exp/bf16/64M reduce/log_sum_exp/fp16/64M
reduce/plus/fp32/64M reduce/moments/fp32/16M reduce/argmax/fp32/16M reduce/minmax/fp32/16M reduce/affine/fp32/16M
reduce/longest_run/fp32/16M reduce/min_plus/fp64/4M reduce/fanout/fp32/16M
softmax/rows/fp64/4096x1024 softmax/rows/fp32/4Mx1 softmax/rows/fp32/256Kx17 softmax/rows/fp32/100x1000003
softmax/strided/fp32/4096x1024 softmax/in_place/fp32/4096x1024
log_softmax/rows/fp32/4096x1024 log_softmax/rows/bf16/512x32000
logsumexp/rows/fp32/4096x1024 logsumexp/wide/fp32/512x32000 cross_entropy/rows/bf16/512x32000
scan/affine/fp32/16M scan/log_sum_exp/fp32/16M reduce_segments/plus/fp32/16M_of_1000
attention/full/fp32/h8_n2000_d80 attention/causal/fp32/h8_n2000_d80
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
    "1x64M": "1x2M",
    "4Mx1": "256Kx1",
    "256Kx17": "32Kx17",
    "100x1000003": "3x1000003",
    "16M_of_1000": "1M_of_1000",
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


# ---- inputs and references


def inputs(work):
    """name -> raw array: what bench.py leaves for everybody."""
    random = np.random.default_rng(1)
    normal = lambda n: random.standard_normal(n, dtype=np.float32)
    if work.verb in ("attention", "decode"):
        h, kv, q, n, d = work.attention
        return {
            "q": narrowed(normal(h * q * d), work.type),
            "k": narrowed(normal(kv * n * d), work.type),
            "v": narrowed(normal(kv * n * d), work.type),
        }
    rows, columns = work.rows
    n = rows * columns
    if work.what == "longest_run":
        return {"x": (random.random(n, dtype=np.float32) < 0.9).astype(np.uint8)}
    if work.what == "affine":
        return {"x": np.stack([random.random(n, dtype=np.float32) / 10 + np.float32(0.9), normal(n)], axis=1)}
    if work.what == "min_plus":
        return {"x": random.random((n, 4))}
    if work.what == "wide":
        return {"x": narrowed(normal(n) * np.float32(20), work.type)}
    given = {"x": narrowed(normal(n), work.type)}
    if work.verb == "cross_entropy":
        given["targets"] = random.integers(0, columns, rows)
    if work.verb == "reduce_segments":
        cuts = random.choice(n - 1, n // count(work.shape.split("_of_")[1]) - 1, replace=False) + 1
        given["offsets"] = np.concatenate([[0], np.sort(cuts), [n]]).astype(np.int64)
    return given


def logsumexp64(x):
    """Row by row, 4M elements at a time."""
    pieces = [x[..., i : i + 4 * M].astype(np.float64) for i in range(0, x.shape[-1], 4 * M)]
    m = np.max([p.max(axis=-1) for p in pieces], axis=0)
    return m + np.log(np.sum([np.exp(p - m[..., None]).sum(axis=-1) for p in pieces], axis=0))


def folded_in_pairs(combine, state):
    """The fold of states in order, neighbours first; an odd one out goes up as it is."""
    while len(state) > 1:
        pairs = combine(state[0 : len(state) // 2 * 2 : 2], state[1::2])
        state = np.concatenate([pairs, state[-1:]]) if len(state) % 2 else pairs
    return state[0]


def compose(left, right):
    return np.stack([right[:, 0] * left[:, 0], right[:, 0] * left[:, 1] + right[:, 1]], axis=1)


def cheapest(x, y):
    x, y = x.reshape(-1, 2, 2), y.reshape(-1, 2, 2)
    return np.min(x[:, :, :, None] + y[:, None, :, :], axis=2).reshape(-1, 4)


def reduced(work, x):
    what = work.what
    if what.startswith("log_sum_exp"):
        return [logsumexp64(widened(x, work.type))]
    if what == "moments":
        return [x.mean(dtype=np.float64), x.var(dtype=np.float64)]
    if what == "fanout":
        return [x.mean(dtype=np.float64), x.var(dtype=np.float64), x.min(), x.max()]
    if what == "minmax":
        return [x.min(), x.max()]
    if what == "argmax":
        return [x.max(), x.argmax()]
    if what == "plus":
        return [x.sum(dtype=np.float64)]
    if what == "affine":
        return folded_in_pairs(compose, x.reshape(-1, 2).astype(np.float64))
    if what == "min_plus":
        return folded_in_pairs(cheapest, x.reshape(-1, 4))
    if what == "longest_run":
        ends = np.flatnonzero(np.concatenate([[0], x, [0]]) == 0)
        return [np.diff(ends).max() - 1]
    raise NoSuchWork(f"no reference for {work.name}")


def scanned(work, x):
    if work.what == "plus":
        return np.cumsum(x, dtype=np.float64)
    if work.what == "log_sum_exp":
        return np.logaddexp.accumulate(x.astype(np.float64))
    maps = x.reshape(-1, 2).astype(np.float64)
    width = 1 << (int(math.log2(len(maps))) // 2)
    if len(maps) % width:
        raise NoSuchWork("the affine scan's reference needs a power of two")
    block = maps.reshape(-1, width, 2).copy()
    for j in range(1, width):
        block[:, j] = compose(block[:, j - 1], block[:, j])
    for i in range(1, len(block)):
        block[i] = compose(np.broadcast_to(block[i - 1, -1], block[i].shape), block[i])
    return block.reshape(-1)


# Attention is compared at this many queries of each head: the float64 product of all of them would outlast the benchmark.
SAMPLED = 16


def sampled_queries(work):
    queries = work.attention[2]
    return np.unique(np.linspace(0, queries - 1, min(SAMPLED, queries)).astype(int))


def attended(work, q, k, v):
    h, kv, queries, n, d = work.attention
    q, k, v = (
        widened(a, work.type).astype(np.float64).reshape(-1, rows, d) for a, rows in ((q, queries), (k, n), (v, n))
    )
    at = sampled_queries(work)
    out = np.empty((h, len(at), d))
    for head in range(h):
        group = head * kv // h
        score = q[head, at] @ k[group].T / math.sqrt(d)
        if work.what == "causal":
            score[np.arange(n)[None, :] > at[:, None] + n - queries] = -np.inf
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        out[head] = weight @ v[group] / weight.sum(axis=1, keepdims=True)
    return out


def reference(work, given):
    """The float64 result, flat; of attention at the sampled queries only."""
    if work.verb in ("attention", "decode"):
        return attended(work, **given).reshape(-1)
    raw = given["x"]
    if work.verb in ("reduce", "threads"):
        return np.array([float(y) for y in np.ravel(reduced(work, raw))])
    if work.verb == "scan":
        return scanned(work, raw)
    if work.verb == "reduce_segments":
        return np.add.reduceat(raw.astype(np.float64), given["offsets"][:-1])
    rows, columns = work.rows
    x = widened(raw, work.type)
    # strided: a row of the work is a column of memory
    x = x.reshape(columns, rows).T if work.what == "strided" else x.reshape(rows, columns)
    lse = logsumexp64(x)
    if work.verb == "logsumexp":
        return lse
    y = x.astype(np.float64) - lse[:, None]
    if work.verb == "log_softmax":
        return y.reshape(-1)
    np.exp(y, out=y)
    if work.verb == "cross_entropy":
        y[np.arange(rows), given["targets"]] -= 1
        y /= rows
    return (y.T if work.what == "strided" else y).reshape(-1)


def sampled(work, result):
    """What of a whole result the reference holds."""
    if work.verb in ("attention", "decode"):
        h, _, queries, _, d = work.attention
        return result.reshape(h, queries, d)[:, sampled_queries(work)].reshape(-1)
    return result


# Results whose elements cancel are judged against the largest of them, others each against itself.
CANCELS = {"log_softmax", "cross_entropy", "scan", "reduce_segments", "attention", "decode", "threads"}


def error(work, result, expected):
    """The worst relative error."""
    got = np.asarray(sampled(work, result), np.float64).reshape(-1)
    if got.shape != expected.shape:
        return math.inf
    apart = np.abs(got - expected)
    if work.verb in CANCELS or work.what in ("plus", "moments", "fanout", "affine"):
        scale = np.abs(expected).max()
    else:
        scale = np.abs(expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(apart == 0, 0.0, apart / scale)
    return math.inf if np.isnan(ratio).any() else float(ratio.max())


# ---- amounts and limits


def amount(work):
    """(what a call amounts to, unit of the figure): bytes that must be read or written, or floating-point operations."""
    if work.verb == "attention":
        h, _, q, n, d = work.attention
        return 4 * h * q * n * d * (0.5 if work.what == "causal" else 1), "GFLOP/s"
    if work.verb == "decode":
        _, kv, _, n, d = work.attention
        return 2 * kv * n * d * work.itemsize, "GB/s"
    rows, columns = work.rows
    n = rows * columns
    element = {"affine": 8, "min_plus": 32, "longest_run": 1}.get(work.what, work.itemsize)
    writes = work.verb in ("softmax", "log_softmax", "cross_entropy", "scan")
    return n * element * (2 if writes else 1), "GB/s"


LONG_ROW = 1 << 18  # elements: longer rows leave a core's cache between the two sweeps of a softmax


def limit(work, threads, seconds):
    """(name, figure) of the machine's limit for a work, from the seconds of the probes beside it; (None, None) if none.

    Rows too long for a core's cache must be read twice: their limit is reading and then copying."""
    size, _ = amount(work)
    rate = lambda t: size / t / 1e9
    if work.verb == "attention":
        peaks = {name: threads * 2**30 / t / 1e9 for name, t in seconds.items()}
        return max(peaks.items(), key=lambda peak: peak[1], default=(None, None))
    copies = {name: t for name, t in seconds.items() if name.startswith("copy")}
    if work.verb in ("softmax", "log_softmax", "cross_entropy", "scan") and copies:
        name, t = min(copies.items(), key=lambda copy: copy[1])
        if work.verb != "scan" and work.rows[1] > LONG_ROW and "read" in seconds:
            return "read, then " + name, rate(t + seconds["read"])
        return name, rate(t)
    if "read" in seconds:
        return "read", rate(seconds["read"])
    return None, None
