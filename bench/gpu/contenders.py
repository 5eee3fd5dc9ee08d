# SPDX-License-Identifier: Apache-2.0
"""Who can do a work on a GPU: ours (ours.cu, by ctypes), PyTorch eager and compiled, its attention backends, Triton.

Each contender is a function without arguments that leaves its result in memory of its own, and returns it.
"""

import ctypes
import re

import torch

import works

TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Refused(RuntimeError):
    """A contender that cannot do a work, with the reason."""


class Library:
    """Our entries, each at work on tensors: no copy, no allocation while it is timed."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.regroup_gpu_name.restype = ctypes.c_char_p
        self.library.regroup_gpu_call.restype = ctypes.c_char_p
        self.library.regroup_gpu_call.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 5]

    def names(self):
        found, i = [], 0
        while name := self.library.regroup_gpu_name(i):
            found, i = [*found, name.decode()], i + 1
        return found

    def call(self, name, shape, arrays, memory, count, stream):
        said = self.library.regroup_gpu_call(
            name.encode(), shape, arrays, memory, ctypes.cast(ctypes.byref(count), ctypes.c_void_p), stream
        )
        if said is not None:
            raise Refused(said.decode())

    def entry(self, name, shape, tensors):
        shape = (ctypes.c_int64 * len(shape))(*shape)
        arrays = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        stream, count = torch.cuda.current_stream().cuda_stream, ctypes.c_int64(0)
        self.call(name, shape, arrays, None, count, stream)
        memory = torch.empty(count.value + 16, dtype=torch.uint8, device="cuda")
        return lambda: (self.call(name, shape, arrays, memory.data_ptr(), count, stream), tensors[-1], memory)[1]


def inputs(work):
    """Normal numbers, the same in every run."""
    generator = torch.Generator("cuda").manual_seed(1)
    random = lambda *shape: torch.randn(*shape, generator=generator, device="cuda").to(TYPES[work.type])
    if work.verb in ("attention", "decode"):
        h, kv, q, n, d = work.attention
        return random(h, q, d), random(kv, n, d), random(kv, n, d)
    if work.verb == "reduce_segments":
        return random(work.rows[1]), offsets(work)
    return (random(*work.rows),)


def offsets(work):
    """Where the segments of 256M_of_1000 begin and end; those of 256M_of_mixed are of 1 to 256K, each power as often."""
    n, of = work.rows[1], work.shape.split("_of_")[1]
    if of == "mixed":
        generator = torch.Generator().manual_seed(1)
        lengths = (2 ** (18 * torch.rand(n // 1024, generator=generator))).long()
        ends = torch.cat([torch.tensor([0]), lengths.cumsum(0)])
    else:
        ends = torch.arange(0, n, works.count(of))
    return torch.cat([ends[ends < n], torch.tensor([n])]).int().cuda()


def paged(k, page_size, table):
    """The keys (heads, n, d) in a pool (pages, heads, page size, d) whose pages `table` orders."""
    pool = torch.empty(len(table), k.shape[0], page_size, k.shape[2], dtype=k.dtype, device="cuda")
    pool[table.long()] = k.unflatten(1, (-1, page_size)).transpose(0, 1)
    return pool


def attend(q, k, v, causal):
    # PyTorch's mask is top-left, ours bottom-right: the same for as many queries as keys.
    return torch.nn.functional.scaled_dot_product_attention(
        q[None], k[None], v[None], is_causal=causal, enable_gqa=q.shape[0] != k.shape[0]
    )[0]


def reference(work, given):
    """float64, of as much as is compared: all of it, or the last 16 queries of the first 8 heads."""
    if work.verb in ("attention", "decode"):
        q, k, v = given
        group, queries, keys = q.shape[0] // k.shape[0], q.shape[1], k.shape[1]
        heads = slice(0, min(8, q.shape[0]))
        keys_of = lambda x: x[heads].repeat_interleave(group, 0)[heads].double()
        scores = q[heads, -16:].double() @ keys_of(k).mT / q.shape[2] ** 0.5
        if work.what == "causal":
            row = torch.arange(queries, device="cuda")[-16:, None]
            scores.masked_fill_(torch.arange(keys, device="cuda") > row, -torch.inf)
        return scores.softmax(-1) @ keys_of(v)
    x = given[0].double()
    if work.verb == "reduce_segments":
        return segmented(work.what, x, given[1])
    return {
        "plus": lambda: x.sum() if work.verb == "reduce" else x.cumsum(-1),
        "log_sum_exp": lambda: x.flatten().logsumexp(0) if work.verb == "reduce" else x.logcumsumexp(-1),
        "rows": lambda: x.softmax(-1) if work.verb == "softmax" else x.logsumexp(-1),
    }[work.what]()


def segmented(what, x, offsets):
    """The sum of each segment, or log(sum exp), as far as no sum overflows."""
    sums = lambda x: torch.segment_reduce(x, "sum", offsets=offsets.long())
    return sums(x) if what == "plus" else sums(x.exp()).log()


def compared(work, result):
    """The part of a result that `reference` has."""
    if work.verb in ("attention", "decode"):
        return result[: min(8, result.shape[0]), -16:].double()
    return result.double()


def error(work, result, expected):
    """The worst relative one; sums, scans and averages, whose terms cancel, are judged against the largest."""
    difference = (compared(work, result).reshape(expected.shape) - expected).abs()
    size = expected.abs() if work.verb == "softmax" else expected.abs().max()
    return float((difference / size.clamp_min(1e-300)).max())


def compiled(f, *given):
    """torch.compile of f, compiled here and now."""
    torch._dynamo.reset()  # or the ninth shape of one function stays eager without a word
    f = torch.compile(f, dynamic=False)
    f(*given)
    return lambda: f(*given)


def triton_softmax(x):
    """The fused row kernel that Triton's tutorials teach: a row is one block of registers."""
    import triton

    from triton_rows import softmax_rows

    rows, columns = x.shape
    y, block = torch.empty_like(x), triton.next_power_of_2(columns)
    if block > 1 << 17:
        raise Refused(f"a row of {columns} does not fit the registers of one block")
    warps = min(max(block // 512, 4), 32)
    return lambda: (softmax_rows[(rows,)](x, y, columns, BLOCK=block, num_warps=warps), y)[1]


def peers(work, given):
    """name -> a function that makes the contender."""
    if work.verb in ("attention", "decode"):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        causal = work.what == "causal"

        def backend(which):
            def call():
                with sdpa_kernel(which):
                    return attend(*given, causal)

            return lambda: call

        return {
            "torch SDPA, flash": backend(SDPBackend.FLASH_ATTENTION),
            "torch SDPA, cuDNN": backend(SDPBackend.CUDNN_ATTENTION),
            "torch SDPA, efficient": backend(SDPBackend.EFFICIENT_ATTENTION),
        }
    x = given[0]
    if work.verb == "reduce_segments":
        return {"torch": lambda: lambda: segmented(work.what, *given)}
    f = {
        "reduce/plus": lambda x: x.sum(),
        "reduce/log_sum_exp": lambda x: x.flatten().logsumexp(0),
        "scan/plus": lambda x: x.cumsum(-1),
        "scan/log_sum_exp": lambda x: x.logcumsumexp(-1),
        "softmax/rows": lambda x: x.softmax(-1),
        "logsumexp/rows": lambda x: x.logsumexp(-1),
    }[f"{work.verb}/{work.what}"]
    found = {"torch": lambda: lambda: f(x), "torch, compiled": lambda: compiled(f, x)}
    if work.verb == "softmax":
        found["Triton, fused"] = lambda: triton_softmax(x)
    return found


def own(work, given, library):
    """The same for our entries: the ordered one is `ours`, CUB with plain sums is a peer."""
    x = given[0]
    if work.verb in ("attention", "decode"):
        shape, y = work.attention, torch.empty_like(x)
        if page := re.search(r"_p(\d+)", work.shape):
            shape = (*shape, int(page[1]))
            table = torch.randperm(given[1].shape[1] // shape[-1], device="cuda").int()
            given = (x, *(paged(k, shape[-1], table) for k in given[1:]), table)
    elif work.verb == "reduce":
        shape, y = work.rows, torch.empty(1, device="cuda")
    elif work.verb == "reduce_segments":
        shape = (len(x), len(given[1]) - 1)
        y = torch.empty(shape[1], device="cuda")
    elif work.verb == "logsumexp":
        shape, y = work.rows, torch.empty(work.rows[0], device="cuda")
    else:
        shape, y = work.rows, torch.empty_like(x)
    names = {"": "ours", " unordered": "ours, unordered (CUB)", " cub": "CUB, its own sum", " fast": "ours, tensor cores"}
    prefix = f"{work.verb}/{work.what}/{work.type}"
    return {
        names[suffix]: lambda suffix=suffix: library.entry(prefix + suffix, shape, (*given, y))
        for suffix in names
        if prefix + suffix in library.names()
    }
