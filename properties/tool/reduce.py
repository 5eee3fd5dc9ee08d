# SPDX-License-Identifier: Apache-2.0
# regroup reduce against NumPy: every monoid, type, axis and order; special values; streams; the same bits everywhere.
import io
import itertools

import numpy as np

from support import BF16, FLOATS, SMALLEST, TYPES, UNIT, Case, accumulated, cast, main, steps, widen

SCALARS = "sum,product,min,max,argmin,argmax,count,mean,moments,log_sum_exp,any,all,histogram:-2,2,7"
POSITIONAL = ["argmin", "argmax"]


def bytes_of(array):
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


def moved(x, axes):
    """The reduced axes as one last axis, in C order of theirs."""
    axes = sorted(a % x.ndim for a in axes)
    rest = [a for a in range(x.ndim) if a not in axes]
    return x.transpose(rest + axes).reshape([x.shape[a] for a in rest] + [-1])


def perfect(xs):
    while len(xs) > 1:
        xs = [xs[i] + xs[i + 1] if i + 1 < len(xs) else xs[i] for i in range(0, len(xs), 2)]
    return xs[0]


def sum_in_order(x):
    """The contract's order of a commutative fold, in so many words: lanes, halving, then the tree of tiles."""
    leaves = []
    for start in range(0, len(x), 4096):
        lanes = [None] * 128
        for i, value in enumerate(x[start:start + 4096]):
            lanes[i % 128] = value if lanes[i % 128] is None else lanes[i % 128] + value
        h = 64
        while h >= 1:
            for j in range(h):
                if lanes[j + h] is not None:
                    lanes[j] = lanes[j + h] if lanes[j] is None else lanes[j] + lanes[j + h]
            h //= 2
        leaves.append(lanes[0])
    return perfect(leaves) + x.dtype.type(0)


class Reduce(Case):
    def test_the_order_of_combination(self):
        for n in [1, 2, 37, 127, 128, 129, 255, 4095, 4096, 4097, 8192, 12289, 20480, 28673]:
            for kind in ["f4", "f8"]:
                x = self.random.normal(size=n).astype(kind) * np.exp(self.random.normal(size=n) * 3).astype(kind)
                self.assertSameBits(self.array("reduce", self.save("x.npy", x), "--with", "sum")[()], sum_in_order(x), (n, kind))

    def test_products_that_leave_the_range_on_the_way(self):
        for kind, e in [("f2", 15), ("bf16", 120), ("f4", 120), ("f8", 1000)]:
            big = np.ldexp(1.0, e)
            one = np.array([big, -1 / big] * 300 + [big] * 40 + [1 / big] * 40)
            zero, infinite, none, small = (one.copy() for _ in range(4))
            zero[50], infinite[600], none[[0, 679]], small[0] = -0.0, np.inf, [0, np.inf], 1
            x = cast(np.stack([one, self.random.permutation(one), -one, zero, infinite, none, small, np.resize([2, 0.5], 680)]), kind)
            expected = cast(np.array([1, 1, 1, -0.0, np.inf, np.nan, 1 / big, 1]), kind)
            got = self.array("reduce", self.save("x.npy", x), "--with", "product", "--axis", "1")
            self.assertSameBits(widen(got), widen(expected), kind)
            self.array("reduce", self.save("t.npy", np.ascontiguousarray(x.T)), "--with", "product", "--axis", "0", out="t.out.npy")
            self.assertSameBits(widen(np.load(self.path("t.out.npy"))), widen(expected), kind)
            self.stream(bytes_of(x), "reduce", "-", "--with", "product", "--axis", "1", "-o", self.path("s.npy"))
            self.assertSameBits(widen(np.load(self.path("s.npy"))), widen(expected), kind)
        for xs, value in [([0, 1e30, 0, 1e30], 0.0), ([2, 0.5] * 16384, 1.0), ([], 1.0), ([1e30, 1e30], np.inf)]:
            self.assertSameBits(self.array("reduce", self.save("x.npy", np.array(xs, "f4")), "--with", "product")[()], np.float32(value))
        for kind in FLOATS:
            x = cast(np.exp(self.random.normal(size=(5, 3000)) * (0.05 if kind == "f2" else 0.5)), kind)
            wide = widen(x).astype(np.longdouble).prod(axis=1)
            got = widen(self.array("reduce", self.save("x.npy", x), "--with", "product", "--axis", "1"))
            self.assertWithin(got, wide, 1.01 * (3000 * accumulated(kind) + UNIT[kind]) * wide + SMALLEST[kind], kind)

    def test_logsumexp_as_in_softmax(self):
        for n in [1, 100, 4096, 70000]:  # between one tile and 65,536 elements softmax has an order of its own
            x = (self.random.normal(size=(3, n)) * 4).astype("f4")
            self.array("softmax", self.save("x.npy", x), "--lse", self.path("l.npy"))
            self.assertSameBits(self.array("reduce", self.path("x.npy"), "--with", "log_sum_exp", "--axis", "1"), np.load(self.path("l.npy")), n)

    def check(self, x, kind, axes=None, keepdims=False):
        """All scalar monoids in one pass, each against NumPy."""
        path = self.save("x.npy", x)
        words = [] if axes is None else ["--axis", ",".join(map(str, axes))]
        self.ok("reduce", path, "--with", SCALARS, *words, *(["--keepdims"] if keepdims else []), "-o", self.path("r.npy"))
        got = {name: np.load(self.path(f"r.{name}.npy")) for name in
               ["sum", "product", "min", "max", "argmin", "argmax", "count", "mean", "moments", "log_sum_exp", "any",
                "all", "histogram"]}
        values = widen(x)
        rows = moved(values, range(values.ndim) if axes is None else axes)
        wide = rows.astype(np.longdouble)
        n = rows.shape[-1]
        shape = list(np.sum(values, axis=None if axes is None else tuple(axes), keepdims=keepdims).shape)
        own = BF16 if kind == "bf16" else np.dtype(kind)
        integer = kind in ("i4", "i8")
        real = np.dtype("f8" if integer or kind == "f8" else "f4")
        types = dict(sum=own, product=own, min=own, max=own, argmin="i8", argmax="i8", count="i8",
                     mean="f8" if integer else own, moments=real, log_sum_exp=real, any="?", all="?", histogram="i8")
        for name, array in got.items():
            self.assertEqual(array.dtype, np.dtype(types[name]), name)
            self.assertEqual(list(array.shape), shape + {"moments": [3], "histogram": [7]}.get(name, []), name)
        flat = {name: widen(a).reshape(rows.shape[:-1] + a.shape[len(shape):]) for name, a in got.items()}

        u = accumulated(kind)
        narrow = 0 if integer else UNIT[kind]
        h = steps(n)
        if integer:
            self.assertSameBits(flat["sum"], rows.sum(axis=-1, dtype="i8").astype(kind), "sum")
            self.assertSameBits(flat["product"], rows.prod(axis=-1, dtype="i8").astype(kind), "product")
        else:
            total = wide.sum(axis=-1)
            magnitude = np.abs(wide).sum(axis=-1)
            self.assertWithin(flat["sum"], total, 1.01 * (h * u * magnitude + narrow * np.abs(total)), "sum")
        self.assertSameBits(flat["min"], rows.min(axis=-1), "min")
        self.assertSameBits(flat["max"], rows.max(axis=-1), "max")
        self.assertSameBits(flat["argmin"], rows.argmin(axis=-1), "argmin")
        self.assertSameBits(flat["argmax"], rows.argmax(axis=-1), "argmax")
        self.assertTrue((flat["count"] == n).all())
        mean = wide.mean(axis=-1)
        self.assertWithin(flat["mean"], mean, 1.01 * (h * u * np.abs(wide).mean(axis=-1) + (2 * u + narrow) * np.abs(mean)), "mean")
        variance = wide.var(axis=-1)
        relative = 4 * (n + 4) * u * np.sqrt(1 + mean**2 / np.maximum(variance, 1e-300))
        self.assertTrue((flat["moments"][..., 0] == n).all())
        self.assertWithin(flat["moments"][..., 1], mean, 4 * h * u * np.abs(wide).mean(axis=-1), "moments' mean")
        self.assertWithin(flat["moments"][..., 2], variance, relative * variance + u * u * np.abs(wide).max(axis=-1)**2, "variance")
        m = wide.max(axis=-1, keepdims=True)
        weights = np.exp(wide - m)
        s = weights.sum(axis=-1)
        error = u * (weights * ((m - wide) + 4 * h + h)).sum(axis=-1) / s
        lse = m[..., 0] + np.log(s)
        self.assertWithin(flat["log_sum_exp"], lse, 1.01 * (error + 4 * u * np.abs(np.log(s)) + u * np.abs(lse)) + u, "log_sum_exp")
        self.assertSameBits(flat["any"], (rows != 0).any(axis=-1), "any")
        self.assertSameBits(flat["all"], (rows != 0).all(axis=-1), "all")
        if kind != "f2" and kind != "bf16":  # NumPy's edges are rounded to the input's type
            counts = np.apply_along_axis(lambda r: np.histogram(r, 7, (-2, 2))[0], -1, rows)
            self.assertSameBits(flat["histogram"], counts, "histogram")
        return got

    def test_types_and_axes(self):
        x = self.random.normal(size=(3, 4, 5, 6))
        for kind in TYPES:
            a = cast(x if kind in FLOATS else x * 3, kind)
            for axes in [None, (0,), (-1,), (1, 2), (0, 3), (3, 0, 1), (0, 1, 2, 3)]:
                for keepdims in (False, True):
                    with self.subTest(kind=kind, axes=axes, keepdims=keepdims):
                        self.check(a, kind, axes, keepdims)

    def test_lengths_around_every_edge(self):
        for n in [1, 2, 31, 32, 33, 127, 128, 129, 4095, 4096, 4097, 8192, 12289, 100003]:
            for kind in ["f4", "f8"] if n != 100003 else FLOATS + ["i8"]:
                with self.subTest(n=n, kind=kind):
                    self.check(cast(self.random.normal(size=(2, n)) * (1 if kind in FLOATS else 9), kind), kind, (1,))

    def test_same_bits_everywhere(self):
        x = self.random.normal(size=(7, 20001)).astype("f4") * np.exp(self.random.normal(size=(7, 1)) * 5).astype("f4")
        names = SCALARS + ",top_k:3"
        expected = self.ok("reduce", self.save("x.npy", x), "--with", names, "--axis", "1", "--json")
        values = __import__("json").loads(expected)
        for threads in [1, 2, 3, 7]:
            self.assertEqual(self.ok("reduce", self.path("x.npy"), "--with", names, "--axis", "1", "--json", "--threads", threads), expected)
        for target in ["baseline", "x86-64-v3"]:
            done = self.run_tool("reduce", self.path("x.npy"), "--with", names, "--axis", "1", "--json", env={"REGROUP_TARGET": target})
            if done.returncode == 0:
                self.assertEqual(done.stdout.decode(), expected, target)
        self.assertEqual(self.ok("reduce", self.save("f.npy", np.asfortranarray(x)), "--with", names, "--axis", "1", "--json"), expected)
        self.assertEqual(self.ok("reduce", self.save("t.npy", np.ascontiguousarray(x.T)), "--with", SCALARS, "--axis", "0", "--json"),
                         self.ok("reduce", self.path("x.npy"), "--with", SCALARS, "--axis", "1", "--json"))
        self.assertEqual(self.stream(bytes_of(x), "reduce", "-", "--with", names, "--axis", "1", "--json"), expected)
        self.assertEqual(self.stream(bytes_of(np.asfortranarray(x)), "reduce", "-", "--with", names, "--axis", "1", "--json"), expected)
        for name in SCALARS.split(",")[:-3]:
            alone = self.json("reduce", self.path("x.npy"), "--with", name, "--axis", "1")
            self.assertEqual(alone[name], values[name], name)
        for row in range(7):
            alone = self.json("reduce", self.save("row.npy", x[row]), "--with", SCALARS)
            for name, value in alone.items():
                self.assertEqual(value, values[name][row], name)

    def test_streams(self):
        for shape, kind in [((300001,), "f4"), ((3, 5000), "f8"), ((1000, 7), "bf16"), ((11, 13, 17), ">f4"), ((2, 1200000), "f2"), ((), "f8"), ((0,), "f4"), ((5, 0), "i8")]:
            x = cast(self.random.normal(size=shape) * 3, kind)
            for axis in [[], ["--axis", "-1"], ["--axis", "0"]]:
                if axis and x.ndim == 0:
                    continue
                names = "sum,max,count,log_sum_exp" if 0 in x.shape else "sum,max,argmax,moments,log_sum_exp"
                expected = self.ok("reduce", self.save("x.npy", x), "--with", names, *axis)
                self.assertEqual(self.stream(bytes_of(x), "reduce", "-", "--with", names, *axis), expected, (shape, kind, axis))
        x = self.random.normal(size=(4, 5, 6))
        for order in ["C", "F"]:
            data = bytes_of(np.array(x, order=order))
            for axis in ["0", "1", "2", "0,1", "1,2", "0,2"]:
                self.assertEqual(self.stream(data, "reduce", "-", "--with", "sum,argmin", "--axis", axis),
                                 self.ok("reduce", self.save("x.npy", x), "--with", "sum,argmin", "--axis", axis))

    def test_special_values(self):
        nan, inf = np.nan, np.inf
        for kind in ["f4", "f8", "f2", "bf16"]:
            rows = {"nan": [1, nan, 2], "inf": [1, inf, 2], "-inf": [1, -inf, 2], "both": [inf, -inf, 1], "all -inf": [-inf] * 3,
                    "zeros": [0.0, -0.0, 0.0], "minus zeros": [-0.0] * 3, "nan and inf": [inf, nan, -inf]}
            x = cast(np.array(list(rows.values())), kind)
            got = self.json("reduce", self.save("x.npy", x), "--with", "sum,product,min,max,mean,log_sum_exp,argmin,argmax,any,all,count", "--axis", "1")
            with np.errstate(all="ignore"):
                wide = widen(x).astype("f8")
                for name, f in dict(sum=np.sum, product=np.prod, min=np.min, max=np.max, mean=np.mean, argmin=np.argmin,
                                    argmax=np.argmax).items():
                    self.assertTrue(np.array_equal(got[name], f(wide, axis=1), equal_nan=True), (name, got[name]))
            self.assertTrue(np.isnan(got["log_sum_exp"][0]) and np.isnan(got["log_sum_exp"][7]))
            self.assertEqual(got["log_sum_exp"][1], inf)
            self.assertEqual(got["log_sum_exp"][4], -inf)
            self.assertEqual(got["any"], [True] * 5 + [False] * 2 + [True])
            self.assertEqual(got["all"], [True] * 5 + [False] * 2 + [True])
            self.assertEqual(got["count"], [3] * 8)
            self.assertEqual([np.signbit(v) for v in got["sum"][5:7]], [False, False])
            self.assertEqual([np.signbit(v) for v in got["min"][5:7]], [True, True])
            self.assertEqual([np.signbit(v) for v in got["max"][5:7]], [False, True])

    def test_empty(self):
        for kind, low, high in [("f4", -np.inf, np.inf), ("i4", -2**31, 2**31 - 1), ("i8", -2**63, 2**63 - 1)]:
            got = self.json("reduce", self.save("x.npy", np.zeros((2, 0), kind)), "--with",
                            "sum,product,min,max,log_sum_exp,count,any,all,histogram:0,1,2", "--axis", "1")
            self.assertEqual(got, {"sum": [0, 0], "product": [1, 1], "min": [high] * 2, "max": [low] * 2,
                                   "log_sum_exp": [-np.inf] * 2, "count": [0, 0], "any": [False] * 2, "all": [True] * 2,
                                   "histogram": [[0, 0]] * 2})
        for name in ["mean", "moments", "argmin", "argmax"]:
            self.fails(1, "reduce", self.path("x.npy"), "--with", name, "--axis", "1", says=["x.npy", name, "(2, 0)"])
            self.fails(1, "reduce", self.path("x.npy"), "--with", f"sum,{name}", "--axis", "1", "-o", self.path("r.npy"), says=name)
        self.fails(1, "reduce", self.path("x.npy"), "--with", "top_k:1", "--axis", "1", says="top_k:1")
        self.fails(1, "reduce", self.save("x.npy", np.zeros((2, 0, 3), "f4")), "--with", "softmax_mean", says="softmax_mean")
        self.assertEqual(self.json("reduce", self.save("x.npy", np.zeros((0, 3), "f4")), "--with", "mean", "--axis", "1"), {"mean": []})

    def test_top_k(self):
        x = self.random.integers(-5, 5, size=(4, 50, 6)).astype("f8")
        x[0, 3, :] = np.nan
        x[1, 4, :] = np.inf
        x[2, 5, :] = -0.0
        for kind in TYPES:
            with np.errstate(invalid="ignore"):
                a = cast(np.nan_to_num(x) if kind in ("i4", "i8") else x, kind)
            for axis, k in itertools.product([0, 1, 2], [1, 4]):
                self.ok("reduce", self.save("x.npy", a), "--with", f"top_k:{k}", "--axis", axis, "-o", self.path("r.npy"))
                values, indices = np.load(self.path("r.values.npy")), np.load(self.path("r.indices.npy"))
                wide = widen(a).astype("f8")
                # NaN above +inf; the lowest index first among equals
                key = np.where(np.isnan(wide), 2.0, np.where(wide == np.inf, 1.5, np.tanh(wide / 8)))
                order = np.argsort(-key, axis=axis, kind="stable").take(range(k), axis=axis)
                self.assertSameBits(indices, order.astype("i8"), (kind, axis, k))
                self.assertEqual(values.dtype, a.dtype)
                self.assertSameBits(widen(values), np.take_along_axis(widen(a), order, axis), (kind, axis, k))
        flat = self.json("reduce", self.save("x.npy", np.array([[1.0, 9.0], [9.0, 3.0]])), "--with", "top_k:3")
        self.assertEqual(flat, {"top_k.values": [9, 9, 3], "top_k.indices": [1, 2, 3]})
        self.ok("reduce", self.path("x.npy"), "--with", "sum,top_k:2", "--axis", "1", "-o", self.path("r.npy"))
        self.assertEqual(np.load(self.path("r.top_k.values.npy")).tolist(), [[9, 1], [9, 3]])
        self.assertEqual(np.load(self.path("r.top_k.indices.npy")).tolist(), [[1, 0], [0, 1]])
        self.assertEqual(np.load(self.path("r.sum.npy")).tolist(), [10, 12])
        self.fails(1, "reduce", self.path("x.npy"), "--with", "top_k:3", "--axis", "1", says=["top_k:3", "(2, 2)"])

    def test_softmax_mean(self):
        for kind in FLOATS:
            x = cast(self.random.normal(size=(3, 5000, 4)) * 2, kind)
            got = self.array("reduce", self.save("x.npy", x), "--with", "softmax_mean")
            wide = widen(x).astype(np.longdouble)
            score, value = wide[..., 0], wide[..., 1:]
            m = score.max(axis=1, keepdims=True)
            w = np.exp(score - m)[..., None]
            l = w.sum(axis=1)
            o = (w * value).sum(axis=1) / l
            u, h = accumulated(kind), steps(5000)
            weight = (w * (m - score + 5 * h + 1)[..., None])
            bound = u * ((weight * np.abs(value)).sum(axis=1) + np.abs(o) * weight.sum(axis=1)) / l + (u + UNIT[kind]) * np.abs(o)
            self.assertEqual(got.dtype, x.dtype)
            self.assertWithin(widen(got), o, 1.01 * bound, kind)
            for threads in [1, 2, 7]:
                self.assertSameBits(self.array("reduce", self.path("x.npy"), "--with", "softmax_mean", "--threads", threads), got)
            for other in [np.asfortranarray(x)]:
                self.assertSameBits(self.array("reduce", self.save("f.npy", other), "--with", "softmax_mean", "--axis", "-2"), got)
            self.assertSameBits(self.array("reduce", self.save("one.npy", x[1]), "--with", "softmax_mean"), got[1])
        x = np.full((2, 3, 3), -np.inf)
        x[1, 2] = [0, 5, np.inf]
        self.assertEqual(self.json("reduce", self.save("x.npy", x), "--with", "softmax_mean,count")["softmax_mean"], [[0, 0], [5, np.inf]])
        self.assertEqual(self.array("reduce", self.path("x.npy"), "--with", "softmax_mean", "--keepdims").shape, (2, 1, 2))
        self.fails(1, "reduce", self.path("x.npy"), "--with", "softmax_mean", "--axis", "2", says="last axis but one")
        self.fails(1, "reduce", self.save("x.npy", np.zeros(3)), "--with", "softmax_mean", says="(3,)")
        self.fails(1, "reduce", self.save("x.npy", np.zeros((3, 3), "i8")), "--with", "softmax_mean", says="int64")

    def test_streams_of_scored_rows(self):
        """In blocks of arrays, in blocks of an array's rows, and spooled: the file's bits."""
        for shape in [(3, 50, 4), (5000, 7, 3), (2, 300000, 5), (9, 3), (300000, 4), (4, 5, 1), (0, 5, 3), (2, 3, 5000), (2, 4500, 300)]:
            for kind in FLOATS if np.prod(shape) < 1e5 else ["f4"]:
                x = cast(self.random.normal(size=shape), kind)
                for words in [[], ["--axis", "-2", "--keepdims"]]:
                    y = self.array("reduce", self.save("x.npy", x), "--with", "softmax_mean", *words)
                    for order in "CF":
                        data = bytes_of(np.array(x, order=order))
                        self.stream(data, "reduce", "-", "--with", "softmax_mean", *words, "-o", self.path("s.npy"))
                        self.assertSameBits(np.load(self.path("s.npy")), y, (shape, kind, order))
        self.assertEqual(self.stream(bytes_of(x), "reduce", "-", "--with", "max,softmax_mean"),
                         self.ok("reduce", self.path("x.npy"), "--with", "max,softmax_mean"))

    def test_wrapping(self):
        x = np.array([2**31 - 1, 2, 3], "i4")
        self.assertEqual(self.json("reduce", self.save("x.npy", x), "--with", "sum,product,mean"),
                         {"sum": int(np.int64(2**31 + 4).astype("i4")), "product": int(x.astype("i8").prod().astype("i4")), "mean": (2**31 + 4) / 3})
        x = np.array([2**63 - 1, 2**63 - 1, 3], "i8")
        with np.errstate(over="ignore"):
            self.assertEqual(self.json("reduce", self.save("x.npy", x), "--with", "sum,product"), {"sum": int(x.sum()), "product": int(x.prod())})

    def test_text_reads_back(self):
        x = self.random.normal(size=50).astype("f4") * 1e-3
        words = self.ok("reduce", self.save("x.npy", x[:, None]), "--with", "sum", "--axis", "1").split()
        self.assertSameBits(np.array(words[1:], "f4"), x)
        x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e300, 5e-324])
        self.assertEqual(self.ok("reduce", self.save("x.npy", x[:, None]), "--with", "max", "--axis", "1"),
                         "max nan inf -inf -0.0 1e+300 5e-324\n")
        self.assertEqual(self.ok("reduce", self.path("x.npy"), "--with", "max", "--axis", "1", "--json"),
                         '{"max": [NaN, Infinity, -Infinity, -0.0, 1e+300, 5e-324]}\n')
        self.assertEqual(self.ok("reduce", self.save("x.npy", np.zeros((0, 2))), "--with", "sum", "--axis", "1"), "sum\n")
        self.assertEqual(self.ok("reduce", self.save("x.npy", np.arange(4).reshape(2, 2)), "--with", "sum,moments"),
                         "sum 6\nmoments 4.0 1.5 1.25\n")

    def test_axes_that_do_not_exist(self):
        x = self.save("x.npy", np.zeros((2, 3)))
        for axis in ["2", "-3", "0,5"]:
            self.fails(1, "reduce", x, "--with", "sum", "--axis", axis, says=["x.npy", "(2, 3)"])
        self.fails(1, "reduce", x, "--with", "sum", "--axis", "0,-2", says="twice")
        self.fails(1, "reduce", self.save("x.npy", np.float32(1)), "--with", "sum", "--axis", "0", says="()")


if __name__ == "__main__":
    main()
