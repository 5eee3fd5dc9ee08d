# SPDX-License-Identifier: Apache-2.0
"""The peers that PyPI has, each in its own process: `python peers.py PEER THREADS DIRECTORY` takes commands as lines of JSON.

A peer is a class with one method a verb, `method(work)`, that returns (call, result): call() is what is timed, result()
its output as an array. It raises Cannot where it has no such operation. Where a library lets the caller give the output,
it is given; `note(work)` says where the peer does more or less than we do.
"""

import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np

import works


class Cannot(Exception):
    pass


class Peer:
    def __init__(self, threads, directory):
        self.threads, self.directory = threads, pathlib.Path(directory)

    def given(self, work, name="x", *shape):
        type = np.int64 if name == "targets" else works.stored_type(work.type)
        return np.fromfile(self.directory / name, type).reshape(shape or work.rows)

    def needs(self, work, *types):
        if work.type not in types:
            raise Cannot(f"no {work.type} here")

    def contiguous(self, work):
        if work.what not in ("rows", "wide"):
            raise Cannot("asked for contiguous rows only")

    def prepare(self, work):
        verb = {"decode": "attention"}.get(work.verb, work.verb)
        method = getattr(self, verb, None)
        if method is None or work.what in ("longest_run", "min_plus", "affine", "fanout", "log_sum_exp_scalar"):
            raise Cannot(f"has no {work.verb}/{work.what}")
        return method(work)

    def note(self, work):
        return None


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

    def scan(self, work):
        x = self.given(work)[0]
        y = np.empty_like(x)
        f = {"plus": np.cumsum, "log_sum_exp": np.logaddexp.accumulate}[work.what]
        return lambda: f(x, out=y), lambda: y

    def reduce_segments(self, work):
        x, first = self.given(work)[0], np.fromfile(self.directory / "offsets", np.int64)[:-1]
        y = np.empty(len(first), np.float32)
        return lambda: np.add.reduceat(x, first, out=y), lambda: y


class Torch(Peer):
    name, package = "PyTorch", "torch"

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

    def cross_entropy(self, work):
        x, target = self.tensor(work).requires_grad_(), self.tensor(work, "targets", -1)

        def call():
            x.grad = None
            with self.torch.enable_grad():
                self.torch.nn.functional.cross_entropy(x, target).backward()

        return call, lambda: self.array(x.grad)

    def scan(self, work):
        x = self.tensor(work)[0]
        f = {"plus": self.torch.cumsum, "log_sum_exp": self.torch.logcumsumexp}[work.what]
        y = self.torch.empty_like(x)
        return lambda: f(x, 0, out=y), lambda: self.array(y)

    def reduce_segments(self, work):
        x, offsets = self.tensor(work)[0], self.torch.from_numpy(np.fromfile(self.directory / "offsets", np.int64))
        y = [None]

        def call():
            y[0] = self.torch.segment_reduce(x, "sum", offsets=offsets)

        return call, lambda: self.array(y[0])

    def attention(self, work):
        h, kv, q, n, d = work.attention
        if work.what == "causal" and q != n:
            raise Cannot("its causal mask is aligned top left")
        query, key, value = (
            self.tensor(work, name, 1, heads, rows, d)
            for name, heads, rows in (("q", h, q), ("k", kv, n), ("v", kv, n))
        )
        y = [None]

        def call():
            y[0] = self.torch.nn.functional.scaled_dot_product_attention(
                query, key, value, is_causal=work.what == "causal", enable_gqa=kv != h
            )

        return call, lambda: self.array(y[0])

    def note(self, work):
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
        if work.what != "log_sum_exp":
            raise Cannot("asked for log_sum_exp only")
        f = self.torch.compile(lambda x: self.torch.logsumexp(x, 0), dynamic=False)
        x, y = self.tensor(work)[0], [None]

        def call():
            y[0] = f(x)

        return call, lambda: self.array(y[0])

    def no(self, work):
        raise Cannot("asked for softmax, log_softmax and logsumexp only")

    scan = reduce_segments = attention = cross_entropy = no

    def note(self, work):
        return "its output allocated each call"


class Jax(Peer):
    name, package = "JAX", "jax"

    def __init__(self, threads, directory):
        super().__init__(threads, directory)
        # Its pool is as large as the process may use cores: bench.py pins the process. Also for one thread:
        if threads == 1:
            os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax = jax

    def array_of(self, work, name="x", *shape):
        raw = self.given(work, name, *shape)
        if work.type == "bf16" and name != "targets":
            raw = raw.view(self.jax.numpy.bfloat16)
        return self.jax.device_put(raw)

    def jitted(self, f, *given):
        f, y = self.jax.jit(f), [None]

        def call():
            y[0] = f(*given).block_until_ready()

        return call, lambda: np.asarray(y[0]).astype(np.float32 if y[0].dtype != np.float64 else np.float64)

    def softmax(self, work):
        self.contiguous(work)
        return self.jitted(lambda x: self.jax.nn.softmax(x, 1), self.array_of(work))

    def log_softmax(self, work):
        self.contiguous(work)
        return self.jitted(lambda x: self.jax.nn.log_softmax(x, 1), self.array_of(work))

    def logsumexp(self, work):
        return self.jitted(lambda x: self.jax.nn.logsumexp(x, 1), self.array_of(work))

    def reduce(self, work):
        if work.what == "log_sum_exp":
            return self.jitted(self.jax.nn.logsumexp, self.array_of(work)[0])
        np_ = self.jax.numpy
        f = {
            "plus": lambda x: np_.stack([x.sum()]),
            "moments": lambda x: np_.stack([x.mean(), x.var()]),
            "minmax": lambda x: np_.stack([x.min(), x.max()]),
            "argmax": lambda x: np_.stack([x.max().astype(np_.float64), x.argmax().astype(np_.float64)]),
        }[work.what]
        return self.jitted(f, self.array_of(work)[0])

    def cross_entropy(self, work):
        target, rows = self.array_of(work, "targets", -1), work.rows[0]
        loss = lambda x: -self.jax.nn.log_softmax(x, 1)[self.jax.numpy.arange(rows), target].mean()
        return self.jitted(self.jax.grad(loss), self.array_of(work))

    def scan(self, work):
        if work.what != "plus":
            raise Cannot("has no cumulative logsumexp")
        return self.jitted(self.jax.numpy.cumsum, self.array_of(work)[0])

    def attention(self, work):
        h, kv, q, n, d = work.attention
        query, key, value = (
            self.array_of(work, name, 1, heads, rows, d).transpose(0, 2, 1, 3)
            for name, heads, rows in (("q", h, q), ("k", kv, n), ("v", kv, n))
        )
        if work.what == "causal" and q != n:
            raise Cannot("its causal mask is aligned top left")
        f = lambda *a: self.jax.nn.dot_product_attention(*a, is_causal=work.what == "causal").transpose(0, 2, 1, 3)
        return self.jitted(f, query, key, value)

    def note(self, work):
        return "its output allocated each call"


class OnnxRuntime(Peer):
    name, package = "onnxruntime", "onnxruntime"

    def __init__(self, threads, directory):
        super().__init__(threads, directory)
        import onnx
        import onnxruntime

        self.onnx, self.ort = onnx, onnxruntime

    def run(self, work, op, given, shape, opset=23, domain="", **attributes):
        """One node, its inputs and output bound to memory of ours."""
        self.needs(work, "fp32", "fp64", "fp16")
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        kind = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
        y = np.empty(shape, works.stored_type(work.type))
        names = [f"x{i}" for i in range(len(given))]
        node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
        value = lambda name, a: helper.make_tensor_value_info(name, kind(a), a.shape)
        graph = helper.make_graph([node], "one", [value(n, a) for n, a in zip(names, given)], [value("y", y)])
        opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        options = self.ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        session = self.ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name, a in zip(names, given):
            binding.bind_ortvalue_input(name, self.ort.OrtValue.ortvalue_from_numpy(a))
        binding.bind_output("y", "cpu", 0, y.dtype, y.shape, y.ctypes.data)
        return lambda: session.run_with_iobinding(binding), lambda: y.astype(np.float32) if y.itemsize == 2 else y

    def softmax(self, work):
        self.contiguous(work)
        return self.run(work, "Softmax", [self.given(work)], work.rows, axis=1)

    def log_softmax(self, work):
        self.contiguous(work)
        return self.run(work, "LogSoftmax", [self.given(work)], work.rows, axis=1)

    def logsumexp(self, work):
        return self.run(work, "ReduceLogSumExp", [self.given(work), np.array([1])], (work.rows[0],), keepdims=0)

    def reduce(self, work):
        if work.what != "log_sum_exp":
            raise Cannot("asked for log_sum_exp only")
        return self.logsumexp(work)

    def scan(self, work):
        if work.what != "plus":
            raise Cannot("has no cumulative logsumexp")
        return self.run(work, "CumSum", [self.given(work), np.array(1)], work.rows)

    def attention(self, work):
        h, kv, q, n, d = work.attention
        if h == kv and work.type == "fp32" and q == n:  # its flash kernel: (batch, position, head and channel)
            given = [
                self.given(work, name, h, rows, d).transpose(1, 0, 2).reshape(1, rows, h * d).copy()
                for name, rows in (("q", q), ("k", n), ("v", n))
            ]
            call, result = self.run(
                work,
                "MultiHeadAttention",
                given,
                (1, q, h * d),
                domain="com.microsoft",
                num_heads=h,
                unidirectional=int(work.what == "causal"),
            )
            return call, lambda: result().reshape(q, h, d).transpose(1, 0, 2)
        if work.what == "causal" and q != n:
            raise Cannot("its causal mask is aligned top left")
        given = [
            self.given(work, name, 1, heads, rows, d) for name, heads, rows in (("q", h, q), ("k", kv, n), ("v", kv, n))
        ]
        return self.run(work, "Attention", given, (1, h, q, d), is_causal=int(work.what == "causal"))


class OpenVino(Peer):
    name, package = "OpenVINO", "openvino"

    def __init__(self, threads, directory):
        super().__init__(threads, directory)
        import openvino
        from openvino import opset13

        self.ov, self.ops = openvino, opset13

    def run(self, work, build, given, shape):
        """build(parameters) on inputs and an output of ours."""
        kind = {"fp32": "f32", "fp64": "f64", "fp16": "f16", "bf16": "bf16"}[work.type]
        self.needs(work, "fp32", "fp16", "bf16")
        nodes = [self.ops.parameter(a.shape, getattr(self.ov.Type, kind)) for a in given]
        model = self.ov.Model([build(*nodes)], nodes, "one")
        compiled = self.ov.Core().compile_model(
            model, "CPU", {"INFERENCE_NUM_THREADS": self.threads, "INFERENCE_PRECISION_HINT": kind, "NUM_STREAMS": 1}
        )
        y = np.empty(shape, works.stored_type(work.type))
        tensor = lambda a: self.ov.Tensor(a, a.shape, getattr(self.ov.Type, kind))
        request = compiled.create_infer_request()
        for i, a in enumerate(given):
            request.set_input_tensor(i, tensor(a))
        request.set_output_tensor(0, tensor(y))
        keep = given
        return lambda: request.infer(), lambda: (keep, works.widened(y, work.type))[1]

    def softmax(self, work):
        self.contiguous(work)
        return self.run(work, lambda x: self.ops.softmax(x, 1), [self.given(work)], work.rows)

    def log_softmax(self, work):
        self.contiguous(work)
        return self.run(work, lambda x: self.ops.log_softmax(x, 1), [self.given(work)], work.rows)

    def logsumexp(self, work):
        def build(x):
            o, last = self.ops, np.array([1])
            m = o.reduce_max(x, last, True)
            return o.add(m, o.log(o.reduce_sum(o.exp(o.subtract(x, m)), last, True)))

        return self.run(work, build, [self.given(work)], (work.rows[0], 1))

    def reduce(self, work):
        if work.what != "log_sum_exp":
            raise Cannot("asked for log_sum_exp only")
        return self.logsumexp(work)

    def attention(self, work):
        h, kv, q, n, d = work.attention
        if h != kv:
            raise Cannot("its scaled_dot_product_attention has no grouped queries")
        if work.what == "causal" and q != n:
            raise Cannot("its causal mask is aligned top left")
        given = [
            self.given(work, name, 1, heads, rows, d) for name, heads, rows in (("q", h, q), ("k", kv, n), ("v", kv, n))
        ]
        build = lambda *a: self.ops.scaled_dot_product_attention(*a, causal=work.what == "causal")
        return self.run(work, build, given, (1, h, q, d))


ALL = {peer.name: peer for peer in (NumPy, Torch, TorchCompiled, Jax, OnnxRuntime, OpenVino)}


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
