# SPDX-License-Identifier: Apache-2.0
"""The peers that compile a graph first: JAX, onnxruntime, OpenVINO. Their compilation is not timed."""

import os
import sys

import numpy as np

import works
from peer import Cannot, Peer


class Jax(Peer):
    name, package, rare = "JAX", "jax", ("affine", "window")

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
        array = lambda y: np.asarray(y).astype(np.float32 if y.dtype != np.float64 else np.float64)

        def call():
            y[0] = self.jax.block_until_ready(f(*given))

        return call, lambda: self.jax.tree.map(array, y[0])

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
        if work.what == "affine":
            raise Cannot("has prefixes of maps, but no reduction in order")
        np_ = self.jax.numpy
        f = {
            "plus": lambda x: np_.stack([x.sum()]),
            "moments": lambda x: np_.stack([x.mean(), x.var()]),
            "minmax": lambda x: np_.stack([x.min(), x.max()]),
            "argmax": lambda x: np_.stack([x.max().astype(np_.float64), x.argmax().astype(np_.float64)]),
        }[work.what]
        return self.jitted(f, self.array_of(work)[0])

    def reduce_axes(self, work):
        return self.jitted(lambda x: x.sum(work.summed), self.array_of(work, "x", *work.extents))

    def top_k(self, work):
        f = lambda x: self.jax.numpy.stack([y.astype(np.float32) for y in self.jax.lax.top_k(x, work.kept)], 1)
        return self.jitted(f, self.array_of(work))

    def cross_entropy(self, work):
        target, rows = self.array_of(work, "targets", -1), work.rows[0]
        loss = lambda x: -self.jax.nn.log_softmax(x, 1)[self.jax.numpy.arange(rows), target].mean()
        return self.jitted(self.jax.grad(loss), self.array_of(work))

    def scan(self, work):
        lax = self.jax.lax
        if work.what == "affine":  # a map's two numbers in an array each
            compose = lambda left, right: (right[0] * left[0], right[0] * left[1] + right[1])
            maps = self.array_of(work, "x", -1, 2)
            call, result = self.jitted(lambda *maps: lax.associative_scan(compose, maps), maps[:, 0], maps[:, 1])
            return call, lambda: np.stack(result(), axis=1)
        x = self.array_of(work)
        f = {"plus": lax.cumsum, "log_sum_exp": lax.cumlogsumexp}[work.what]
        return self.jitted(lambda x: f(x, 0), x if work.verb == "scan_axes" else x[0])

    scan_axes = scan

    def in_segments(self, work, of_segments):
        """of_segments(x, fold, each element's segment): fold(f, x) is jax.ops' f of each segment."""
        offsets = np.fromfile(self.directory / "offsets", np.int64)
        count = len(offsets) - 1
        segment = self.jax.device_put(np.repeat(np.arange(count, dtype=np.int32), np.diff(offsets)))

        def call(x, segment):
            return of_segments(x, lambda f, x: f(x, segment, count, indices_are_sorted=True), segment)

        return self.jitted(call, self.array_of(work)[0], segment)

    def reduce_segments(self, work):
        return self.in_segments(work, lambda x, fold, _: fold(self.jax.ops.segment_sum, x))

    def softmax_segments(self, work):
        def softmax(x, fold, segment):
            weights = self.jax.numpy.exp(x - fold(self.jax.ops.segment_max, x)[segment])
            return weights / fold(self.jax.ops.segment_sum, weights)[segment]

        return self.in_segments(work, softmax)

    def attention(self, work):
        h, kv, q, n, d = work.attention
        query, key, value = (
            self.array_of(work, name, 1, heads, rows, d).transpose(0, 2, 1, 3)
            for name, heads, rows in (("q", h, q), ("k", kv, n), ("v", kv, n))
        )
        if work.what == "causal" and q != n:
            raise Cannot("its causal mask is aligned top left")
        seen, mask = works.seen_by_window(work)
        attend = self.jax.nn.dot_product_attention
        f = lambda q, k, v: attend(q, k[:, seen], v[:, seen], mask=mask, is_causal=work.what == "causal")
        return self.jitted(lambda *a: f(*a).transpose(0, 2, 1, 3), query, key, value)

    def note(self, work):
        more = {"affine": ", its maps two arrays", "window": ", given only what the window sees"}
        if work.verb in ("reduce_segments", "softmax_segments"):
            return "its output allocated each call, given each element's segment"
        return "its output allocated each call" + more.get(work.what, "")


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
        helper = self.onnx.helper
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
        if work.what == "plus":
            return self.run(work, "ReduceSum", [self.given(work), np.array([1])], (1,), keepdims=0)
        if work.what != "log_sum_exp":
            raise Cannot("asked for plus and log_sum_exp only")
        return self.logsumexp(work)

    def reduce_axes(self, work):
        given = [self.given(work, "x", *work.extents), np.array(work.summed)]
        return self.run(work, "ReduceSum", given, (work.extents[1],), keepdims=0)

    def scan(self, work):
        if work.what != "plus":
            raise Cannot("has no cumulative logsumexp")
        axis = 0 if work.verb == "scan_axes" else 1
        return self.run(work, "CumSum", [self.given(work), np.array(axis)], work.rows)

    scan_axes = scan

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
        sys.modules["openvino_telemetry"] = None  # it would start a process that tells the network of this run
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
        if work.what == "plus":
            return self.run(work, lambda x: self.ops.reduce_sum(x, np.array([1]), False), [self.given(work)], (1,))
        if work.what != "log_sum_exp":
            raise Cannot("asked for plus and log_sum_exp only")
        return self.logsumexp(work)

    def reduce_axes(self, work):
        build = lambda x: self.ops.reduce_sum(x, np.array(work.summed), False)
        return self.run(work, build, [self.given(work, "x", *work.extents)], (work.extents[1],))

    def scan(self, work):
        if work.what != "plus":
            raise Cannot("has no cumulative logsumexp")
        axis = np.array(0 if work.verb == "scan_axes" else 1)
        return self.run(work, lambda x: self.ops.cum_sum(x, axis), [self.given(work)], work.rows)

    scan_axes = scan

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
