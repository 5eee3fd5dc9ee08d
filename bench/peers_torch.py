# SPDX-License-Identifier: Apache-2.0
"""PyTorch, eager and compiled."""

import numpy as np

import works
from peer import Cannot, Peer


class Torch(Peer):
    name, package, rare = "PyTorch", "torch", ("paged", "window")

    def __init__(self, threads, directory):
        super().__init__(threads, directory)
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch = torch

    def tensor(self, work, name="x", *shape):
        raw = self.torch.from_numpy(self.given(work, name, *shape))
        return raw.view(self.torch.bfloat16) if work.type == "bf16" and name != "targets" else raw

    def array(self, y):
        return (y.float() if y.dtype in (self.torch.bfloat16, self.torch.float16) else y).numpy()

    def into(self, f, x, y):
        return lambda: f(x, out=y), lambda: self.array(y)

    def softmax(self, work, f=None):
        x = self.tensor(work)
        if work.what == "strided":
            x = x.reshape(x.shape[::-1]).T
        y = x if work.what == "in_place" else self.torch.empty_like(x)
        f = f or self.torch.softmax
        return lambda: f(x, 1, out=y), lambda: self.array(y.T if work.what == "strided" else y)

    def log_softmax(self, work):
        return self.softmax(work, self.torch.log_softmax)

    def logsumexp(self, work):
        x = self.tensor(work)
        y = self.torch.empty(work.rows[0], dtype=x.dtype)
        return lambda: self.torch.logsumexp(x, 1, out=y), lambda: self.array(y)

    def reduce(self, work):
        if work.what == "log_sum_exp":
            return self.logsumexp(work)
        t, x = self.torch, self.tensor(work)[0]
        f = {
            "moments": lambda: t.var_mean(x, correction=0)[::-1],
            "minmax": lambda: t.aminmax(x),
            "argmax": lambda: t.max(x, 0),
            "plus": lambda: [x.sum()],
        }[work.what]
        return f, lambda: np.array([float(y) for y in f()])

    def reduce_axes(self, work):
        x, y = self.tensor(work, "x", *work.extents), self.torch.empty(work.extents[1])
        return lambda: self.torch.sum(x, work.summed, out=y), lambda: self.array(y)

    def top_k(self, work):
        x, y = self.tensor(work), [None]

        def call():
            y[0] = self.torch.topk(x, work.kept, 1)

        return call, lambda: np.stack([part.numpy().astype(np.float32) for part in y[0]], axis=1)

    def cross_entropy(self, work, loss=None):
        x, target = self.tensor(work).requires_grad_(), self.tensor(work, "targets", -1)
        loss = loss or self.torch.nn.functional.cross_entropy

        def call():
            x.grad = None
            with self.torch.enable_grad():
                loss(x, target).backward()

        return call, lambda: self.array(x.grad)

    def scan(self, work):
        x = self.tensor(work) if work.verb == "scan_axes" else self.tensor(work)[0]
        f = {"plus": self.torch.cumsum, "log_sum_exp": self.torch.logcumsumexp}[work.what]
        y = self.torch.empty_like(x)
        return lambda: f(x, 0, out=y), lambda: self.array(y)

    scan_axes = scan

    def reduce_segments(self, work):
        x, offsets = self.tensor(work)[0], self.torch.from_numpy(np.fromfile(self.directory / "offsets", np.int64))
        y = [None]

        def call():
            y[0] = self.torch.segment_reduce(x, "sum", offsets=offsets)

        return call, lambda: self.array(y[0])

    def softmax_segments(self, work):
        t, x = self.torch, self.tensor(work)[0]
        offsets = t.from_numpy(np.fromfile(self.directory / "offsets", np.int64))
        lengths, y = offsets.diff(), [None]

        def call():
            largest = t.segment_reduce(x, "max", offsets=offsets)
            weights = t.exp(x - largest.repeat_interleave(lengths, output_size=len(x)))
            sums = t.segment_reduce(weights, "sum", offsets=offsets)
            y[0] = weights.div_(sums.repeat_interleave(lengths, output_size=len(x)))

        return call, lambda: self.array(y[0])

    def attention(self, work):
        h, kv, q, n, d = work.attention
        if work.what == "causal" and q != n:
            raise Cannot("its causal mask is aligned top left")
        query, key, value = (
            self.tensor(work, name, 1, heads, rows, d)
            for name, heads, rows in (("q", h, q), ("k", kv, n), ("v", kv, n))
        )
        seen, mask = works.seen_by_window(work)
        mask = None if mask is None else self.torch.from_numpy(mask)
        key, value = (self.keys(work, x[:, :, seen]) for x in (key, value))
        y = [None]

        def call():
            y[0] = self.torch.nn.functional.scaled_dot_product_attention(
                query, key(), value(), attn_mask=mask, is_causal=work.what == "causal", enable_gqa=kv != h
            )

        return call, lambda: self.array(y[0])

    def keys(self, work, x):
        """A function that gives x: itself, or gathered from the pages of a pool."""
        if work.what != "paged":
            return lambda: x
        _, heads, n, d = x.shape
        if n % work.page:
            raise Cannot("asked for whole pages only")
        pages = x.view(heads, n // work.page, work.page, d).transpose(0, 1)
        table = self.torch.randperm(len(pages))
        pool = self.torch.empty_like(pages, memory_format=self.torch.contiguous_format)
        pool[table] = pages
        return lambda: pool[table].transpose(0, 1).reshape(x.shape)

    def note(self, work):
        if work.what == "paged":
            return "gathers the pages, then attends"
        if work.what == "window":
            return "given only what the window sees"
        return "loss and gradient by autograd, its output allocated each call" if work.verb == "cross_entropy" else None


class TorchCompiled(Torch):
    name = "PyTorch compiled"

    def compiled(self, work, f, *given):
        self.contiguous(work)
        compiled, y = self.torch.compile(f, dynamic=False), [None]

        def call():
            y[0] = compiled(*given)

        call()
        return call, lambda: self.array(y[0])

    def softmax(self, work):
        return self.compiled(work, lambda x: self.torch.softmax(x, 1), self.tensor(work))

    def log_softmax(self, work):
        return self.compiled(work, lambda x: self.torch.log_softmax(x, 1), self.tensor(work))

    def logsumexp(self, work):
        return self.compiled(work, lambda x: self.torch.logsumexp(x, 1), self.tensor(work))

    def reduce(self, work):
        t, x = self.torch, self.tensor(work)[0]
        f = {
            "log_sum_exp": lambda x: [t.logsumexp(x, 0)],
            "moments": lambda x: t.var_mean(x, correction=0)[::-1],
            "minmax": lambda x: t.aminmax(x),
            "argmax": lambda x: t.max(x, 0),
            "plus": lambda x: [x.sum()],
        }[work.what]
        f, y = t.compile(f, dynamic=False), [None]

        def call():
            y[0] = f(x)

        return call, lambda: np.array([float(part) for part in y[0]])

    def reduce_axes(self, work):
        return self.compiled(work, lambda x: x.sum(work.summed), self.tensor(work, "x", *work.extents))

    def cross_entropy(self, work):
        loss = self.torch.nn.functional.cross_entropy
        return super().cross_entropy(work, self.torch.compile(loss, dynamic=False))

    def no(self, work):
        raise Cannot("calls the function that PyTorch calls without it")

    scan = scan_axes = reduce_segments = softmax_segments = attention = top_k = no

    def note(self, work):
        return super().note(work) or "its output allocated each call"
