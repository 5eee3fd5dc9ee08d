# SPDX-License-Identifier: Apache-2.0
"""The inputs of every work, its float64 result, and how far a result is from it."""

import math

import numpy as np

import works


def inputs(work):
    """name -> raw array: what bench.py leaves for everybody."""
    random = np.random.default_rng(1)
    normal = lambda n: random.standard_normal(n, dtype=np.float32)
    if work.verb in ("attention", "decode"):
        h, kv, q, n, d = work.attention
        return {
            "q": works.narrowed(normal(h * q * d), work.type),
            "k": works.narrowed(normal(kv * n * d), work.type),
            "v": works.narrowed(normal(kv * n * d), work.type),
        }
    rows, columns = work.rows
    n = rows * columns
    if work.what == "longest_run":
        return {"x": (random.random(n, dtype=np.float32) < 0.9).astype(np.uint8)}
    if work.what == "affine":
        return {"x": np.stack([random.random(n, dtype=np.float32) / 10 + np.float32(0.9), normal(n)], axis=1)}
    if work.what == "min_plus":
        return {"x": random.random((n, 4))}
    if work.verb == "math":  # all of exp's range over fp32, and numbers whose logarithm may be near 0
        x = np.exp(10 * normal(n)) if work.what == "log" else random.uniform(-87, 87, n)
        return {"x": x.astype(works.stored_type(work.type))}
    if work.what == "wide":
        return {"x": works.narrowed(normal(n) * np.float32(20), work.type)}
    given = {"x": works.narrowed(normal(n), work.type)}
    if work.verb == "cross_entropy":
        given["targets"] = random.integers(0, columns, rows)
    if work.verb in ("reduce_segments", "softmax_segments"):
        cuts = random.choice(n - 1, n // works.count(work.shape.split("_of_")[1]) - 1, replace=False) + 1
        given["offsets"] = np.concatenate([[0], np.sort(cuts), [n]]).astype(np.int64)
    return given


def logsumexp64(x):
    """Row by row, 4M elements at a time."""
    pieces = [x[..., i : i + 4 * works.M].astype(np.float64) for i in range(0, x.shape[-1], 4 * works.M)]
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
        return [logsumexp64(works.widened(x, work.type))]
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
    raise works.NoSuchWork(f"no reference for {work.name}")


def scanned(work, x):
    """The prefixes along the first axis."""
    if work.what == "plus":
        return np.cumsum(x, axis=0, dtype=np.float64)
    if work.what == "log_sum_exp":
        return np.logaddexp.accumulate(x.astype(np.float64))
    maps = x.reshape(-1, 2).astype(np.float64)
    width = 1 << (int(math.log2(len(maps))) // 2)
    if len(maps) % width:
        raise works.NoSuchWork("the affine scan's reference needs a power of two")
    block = maps.reshape(-1, width, 2).copy()
    for j in range(1, width):
        block[:, j] = compose(block[:, j - 1], block[:, j])
    for i in range(1, len(block)):
        block[i] = compose(np.broadcast_to(block[i - 1, -1], block[i].shape), block[i])
    return block.reshape(-1)


# Attention is compared at this many queries of each head: the float64 product of all would outlast the benchmark.
SAMPLED = 16


def sampled_queries(work):
    queries = work.attention[2]
    return np.unique(np.linspace(0, queries - 1, min(SAMPLED, queries)).astype(int))


def attended(work, q, k, v):
    h, kv, queries, n, d = work.attention
    q, k, v = (
        works.widened(a, work.type).astype(np.float64).reshape(-1, rows, d)
        for a, rows in ((q, queries), (k, n), (v, n))
    )
    at = sampled_queries(work)
    out = np.empty((h, len(at), d))
    for head in range(h):
        group = head * kv // h
        score = q[head, at] @ k[group].T / math.sqrt(d)
        if work.what == "causal":
            score[np.arange(n)[None, :] > at[:, None] + n - queries] = -np.inf
        if work.what == "window":
            behind = at[:, None] + n - queries - np.arange(n)[None, :]
            score[(behind < 0) | (behind >= work.window)] = -np.inf
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
    if work.verb == "reduce_axes":
        return raw.reshape(work.extents).sum(axis=work.summed, dtype=np.float64)
    if work.verb == "scan_axes":
        return scanned(work, raw.reshape(work.rows)).reshape(-1)
    if work.verb == "scan":
        return scanned(work, raw)
    if work.verb == "reduce_segments":
        return np.add.reduceat(raw.astype(np.float64), given["offsets"][:-1])
    if work.verb == "softmax_segments":
        first, lengths, x = given["offsets"][:-1], np.diff(given["offsets"]), raw.astype(np.float64)
        weight = np.exp(x - np.repeat(np.maximum.reduceat(x, first), lengths))
        return weight / np.repeat(np.add.reduceat(weight, first), lengths)
    if work.verb == "math":  # x86's longer numbers, for fp64's sake
        return {"exp": np.exp, "exp2": np.exp2, "log": np.log}[work.what](raw.astype(np.longdouble))
    rows, columns = work.rows
    if work.verb == "top_k":  # equal ones in their order
        x = raw.reshape(rows, columns)
        order = np.argsort(-x, axis=1, kind="stable")[:, : work.kept]
        return np.stack([np.take_along_axis(x, order, 1), order], axis=1).astype(np.float64).reshape(-1)
    x = works.widened(raw, work.type)
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
CANCELS = {"log_softmax", "cross_entropy", "scan", "scan_axes", "reduce_segments", "attention", "decode", "threads"}


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
