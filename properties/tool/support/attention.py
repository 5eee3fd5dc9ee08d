# SPDX-License-Identifier: Apache-2.0
# Attention by definition in float64, every option of `regroup attention` included, with the bounds that rounding leaves,
# computed from the input; and a test case that calls the tool with arrays.
import os

import numpy as np

from . import SMALLEST, UNIT, Case, accumulated, cast, widen


def padded(x, rank):
    return x.reshape((1,) * (rank - x.ndim) + x.shape)


def reference(q, k, v, kind, scale=None, causal=None, mask=None, lengths=None, window=None, softcap=None, alibi=None,
              sinks=None):
    """Output, logsumexp and their bounds, in float64; q, k, v widened, of one rank."""
    rank = q.ndim
    q, k, v = (padded(a.astype("f8"), 4) for a in (q, k, v))
    group = q.shape[1] // max(k.shape[1], 1)
    k, v = (np.repeat(a, group, axis=1) for a in (k, v))
    b, h, nq, d = q.shape
    nk = k.shape[2]
    scale = (1 / np.sqrt(d) if d else 1) if scale is None else scale
    u = accumulated(kind)
    with np.errstate(all="ignore"):
        s = np.einsum("bhid,bhjd->bhij", q, k) * scale
        e = (d + 4) * u * np.einsum("bhid,bhjd->bhij", np.abs(q), np.abs(k)) * abs(scale)
        if softcap is not None:
            s = softcap * np.tanh(s / softcap)
            e = np.minimum(e, 2 * softcap) + 6 * u * np.abs(s)
    i, j = np.arange(nq)[:, None], np.arange(nk)[None, :]
    seen = np.ones((b, h, nq, nk), bool)
    lengths = np.full(b, nk) if lengths is None else np.asarray(lengths).astype(np.int64)
    distance = (j - (i + (lengths - nq)[:, None, None]))[:, None]
    seen &= (j < lengths[:, None, None])[:, None]
    with np.errstate(all="ignore"):
        if alibi is not None:
            bias = widen(alibi).astype("f8")[:, None, None] * distance
            s = s + bias
            e = e + u * (np.abs(s) + 2 * np.abs(bias))
        if mask is not None:
            mask = widen(mask)
            whole = np.broadcast_to(padded(mask, 4), (b, h, nq, nk))
            if mask.dtype == bool:
                seen &= whole
            else:
                seen &= whole != -np.inf
                s = s + whole
                e = e + u * (np.abs(s) + np.abs(whole))
    if causal == "top-left":
        seen &= j <= i
    elif causal:
        seen &= distance <= 0
    if window is not None:
        left, right = window
        seen &= (distance >= -left) | (left < 0)
        seen &= (distance <= right) | (right < 0)
    s = np.where(seen, s, -np.inf)
    e = np.where(seen & np.isfinite(e), e, 0)
    nothing = ~seen.any(-1)
    v = np.concatenate([np.where(np.isfinite(v), v, 0), np.zeros((b, h, 1, v.shape[-1]))], axis=2)
    sink = np.full((b, h, nq, 1), -np.inf)  # a key of value 0 that each query has
    if sinks is not None:
        sink[:] = widen(sinks).astype("f8")[:, None, None]
    s, e = np.concatenate([s, sink], -1), np.concatenate([e, np.where(np.isfinite(sink), u * np.abs(sink), 0)], -1)
    m = s.max(-1, initial=-np.inf, keepdims=True)
    with np.errstate(all="ignore"):
        w = np.exp(s - np.where(np.isfinite(m), m, 0))
        l = w.sum(-1, keepdims=True)
        n = 64 * 16 + 16 + np.ceil(np.log2(max(nk, 2)))
        e = e + u * (np.where(np.isfinite(s), m - s, 0) + 4 * 20 + np.minimum(n, nk + 2) + 1)
        o = np.einsum("bhij,bhjd->bhid", w, v) / l
        spread = np.einsum("bhij,bhjd->bhid", w * e, np.abs(v)) / l
        rel = (w * e).sum(-1, keepdims=True) / l
        lse = (m + np.log(l))[..., 0]
        tiny = nk * np.finfo("f8" if kind == "f8" else "f4").tiny  # weights below the smallest normal are 0
        tiny = tiny * np.abs(v).max(axis=2, keepdims=True, initial=0) / l
        bound = 1.01 * (spread + tiny + np.abs(o) * (rel + u + UNIT[kind])) + SMALLEST[kind]
        lse_bound = 1.01 * (rel[..., 0] + 4 * u * np.abs(np.log(l[..., 0])) + u * np.abs(lse)) + u
    o, bound = (np.where(nothing[..., None], 0, a) for a in (o, bound))
    empty = ~np.isfinite(m[..., 0])
    lse, lse_bound = np.where(empty, -np.inf, lse), np.where(empty, 0, lse_bound)
    drop = (0,) * (4 - rank)
    return o[drop], lse[drop], bound[drop], lse_bound[drop]


class AttentionCase(Case):
    def setUp(self):
        super().setUp()
        self.on_disk = {}

    def inputs(self, kind, q_shape, k_shape, dv=None, size=1.5):
        shapes = [q_shape, k_shape, k_shape[:-1] + ((k_shape[-1] if dv is None else dv),)]
        return [cast(self.random.normal(size=s) * size, kind) for s in shapes]

    def command(self, q, k, v, *words, **arrays):
        """The words of a call, with the arrays saved; array options are named as in Python."""
        for name, array in dict(q=q, k=k, v=v, **arrays).items():
            if name not in self.on_disk or self.on_disk[name] is not array:
                self.save(name + ".npy", array)
                self.on_disk[name] = array
        extra = []
        for name in arrays:
            extra += ["--" + name.replace("_", "-"), self.path(name + ".npy")]
        return ["attention", self.path("q.npy"), self.path("k.npy"), self.path("v.npy"), *words, *extra]

    def attend(self, q, k, v, *words, **arrays):
        o = self.array(*self.command(q, k, v, *words, **arrays), "--lse", self.path("lse.npy"))
        return o, np.load(self.path("lse.npy"))

    def options(self, scale=None, causal=None, window=None, softcap=None, mask=None, lengths=None, alibi=None, sinks=None):
        """Options of `reference` as words and arrays of the tool."""
        words, arrays = [], {}
        if scale is not None:
            words += ["--scale", repr(scale)]
        if causal:
            words += ["--causal" if causal == "bottom-right" else "--causal=" + causal]
        if window is not None:
            words += ["--window", f"{window[0]},{window[1]}"]
        if softcap is not None:
            words += ["--softcap", repr(softcap)]
        if lengths is not None:
            arrays["kv_lengths"] = np.asarray(lengths)
        for name, array in dict(mask=mask, alibi=alibi, sinks=sinks).items():
            if array is not None:
                arrays[name] = array
        return words, arrays

    def check(self, q, k, v, kind, *words, **options):
        option_words, arrays = self.options(**options)
        o, lse = self.attend(q, k, v, *words, *option_words, **arrays)
        expected, expected_lse, bound, lse_bound = reference(widen(q), widen(k), widen(v), kind, **options)
        self.assertEqual((o.dtype, o.shape), (q.dtype, q.shape[:-1] + v.shape[-1:]))
        self.assertEqual((lse.dtype, lse.shape), (np.dtype("f8" if kind == "f8" else "f4"), q.shape[:-1]))
        about = (words, option_words, list(arrays))
        self.assertWithin(widen(o), expected, bound, about)
        self.assertWithin(lse, expected_lse, lse_bound, about)
        return o, lse
