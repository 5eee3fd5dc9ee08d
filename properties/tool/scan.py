# SPDX-License-Identifier: Apache-2.0
# regroup scan against NumPy: every monoid, type, axis and direction; the first k results are the scan of the first k.
import io

import numpy as np

from support import BF16, FLOATS, SMALLEST, TYPES, UNIT, Case, accumulated, cast, main, same_bits, steps, widen

UFUNCS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}


def bytes_of(array):
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


def expected(name, x, exclusive, identity):
    """Prefixes along the last axis in long double (floats) or int64."""
    wide = x.astype(np.longdouble if x.dtype.kind == "f" else "i8")
    if name == "log_sum_exp":
        y = np.logaddexp.accumulate(wide.astype(np.longdouble), axis=-1)
    elif name in ("any", "all"):
        y = (np.logical_or if name == "any" else np.logical_and).accumulate(x != 0, axis=-1)
    elif name == "count":
        y = np.broadcast_to(np.arange(1, x.shape[-1] + 1), x.shape)
    else:
        y = UFUNCS[name].accumulate(wide, axis=-1)
    if not exclusive:
        return y
    first = np.full(x.shape[:-1] + (1,), identity, y.dtype)
    return np.concatenate([first, y[..., :-1]], axis=-1)


class Scan(Case):
    def check(self, x, kind, name, axis=-1, exclusive=False, reverse=False):
        words = ["--with", name, "--axis", axis] + ["--exclusive"] * exclusive + ["--reverse"] * reverse
        got = self.array("scan", self.save("x.npy", x), *words)
        values = np.moveaxis(widen(x), axis, -1)
        values = values[..., ::-1] if reverse else values
        integer = kind in ("i4", "i8")
        low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if integer else (-np.inf, np.inf)
        identity = {"sum": 0, "product": 1, "min": high, "max": low, "log_sum_exp": -np.inf, "any": False, "all": True,
                    "count": 0}[name]
        with np.errstate(all="ignore"):
            y = expected(name, values, exclusive, identity)
        own = BF16 if kind == "bf16" else np.dtype(kind)
        real = np.dtype("f8" if integer or kind == "f8" else "f4")
        self.assertEqual(got.dtype, {"log_sum_exp": real, "any": np.dtype("?"), "all": np.dtype("?"), "count": np.dtype("i8")}.get(name, own))
        self.assertEqual(got.shape, x.shape)
        z = np.moveaxis(widen(got), axis, -1)
        z = z[..., ::-1] if reverse else z
        if name in ("min", "max", "any", "all", "count"):
            self.assertSameBits(np.ascontiguousarray(z), y.astype(z.dtype), (kind, name))
            return
        if integer and name != "log_sum_exp":
            self.assertSameBits(np.ascontiguousarray(z), y.astype(kind), (kind, name))
            return
        u, n = accumulated(kind), values.shape[-1]
        h = steps(n) + 9
        wide = np.abs(values.astype(np.longdouble))
        if name == "sum":
            bound = h * u * wide.cumsum(axis=-1)
        elif name == "product":
            bound = n * u * np.abs(y)
        else:
            bound = u * (np.abs(y) + 6 * h + 40) + 0 * wide
        if name != "log_sum_exp":
            bound = bound + UNIT[kind] * np.abs(y)
        if exclusive:
            bound = np.concatenate([0 * bound[..., :1], bound[..., :-1]], axis=-1) if name == "sum" else bound
            if name == "sum":
                bound = bound + UNIT[kind] * np.abs(y)
        self.assertWithin(z, y, 1.02 * bound + (SMALLEST[kind] if name != "log_sum_exp" else 0), (kind, name))

    def test_monoids_and_types(self):
        x = self.random.normal(size=(3, 4, 150))
        factors = np.sign(x) * np.exp(x / 10)  # whose products stay in the range of 16 bits
        for kind in TYPES:
            for name in ["sum", "product", "min", "max", "log_sum_exp", "any", "all", "count"]:
                for axis, exclusive, reverse in [(-1, False, False), (0, True, False), (1, False, True), (2, True, True)]:
                    with self.subTest(kind=kind, name=name, axis=axis, exclusive=exclusive, reverse=reverse):
                        a = cast(3 * x if kind not in FLOATS else factors if name == "product" else x, kind)
                        self.check(a, kind, name, axis, exclusive, reverse)

    def test_lengths_around_every_edge(self):
        for n in [1, 2, 31, 32, 33, 128, 129, 4095, 4096, 4097, 8193, 50001]:
            x = self.random.normal(size=n)
            for name in ["sum", "max", "log_sum_exp"]:
                for exclusive in (False, True):
                    with self.subTest(n=n, name=name, exclusive=exclusive):
                        self.check(x.astype("f4"), "f4", name, -1, exclusive)

    def test_same_bits(self):
        x = (self.random.normal(size=(5, 20003)) * 3).astype("f4")
        self.save("x.npy", x)
        for name in ["sum", "product", "log_sum_exp"]:
            y = self.array("scan", self.path("x.npy"), "--with", name)
            for threads in [1, 2, 3, 7]:
                self.assertSameBits(self.array("scan", self.path("x.npy"), "--with", name, "--threads", threads), y)
            self.assertSameBits(self.array("scan", self.save("f.npy", np.asfortranarray(x)), "--with", name), y)
            self.assertSameBits(self.array("scan", self.save("t.npy", np.ascontiguousarray(x.T)), "--with", name, "--axis", "0").T.copy(), y)
            self.assertSameBits(self.array("scan", self.save("b.npy", x.astype(">f4")), "--with", name), y)
            self.assertSameBits(self.array("scan", self.save("row.npy", x[3]), "--with", name), y[3])
            self.stream(bytes_of(x), "scan", "-", "--with", name, "-o", self.path("s.npy"))
            self.assertSameBits(np.load(self.path("s.npy")), y)
            for k in [1, 100, 4096, 4097, 12289]:
                self.assertSameBits(self.array("scan", self.save("k.npy", x[:, :k]), "--with", name), y[:, :k].copy(), (name, k))
            flipped = self.array("scan", self.save("r.npy", x[:, ::-1].copy()), "--with", name)
            self.assertSameBits(self.array("scan", self.path("x.npy"), "--with", name, "--reverse"), flipped[:, ::-1].copy())

    def test_streams(self):
        """Every monoid, type and order from standard input: the file's bits."""
        for shape, axis in [((3, 150), -1), ((4, 3, 2), 0), ((300001,), 0), ((0,), 0), ((3, 0), -1), ((2, 70, 2), 1)]:
            for kind in [*TYPES, "?", ">f4", ">i8"]:
                if np.prod(shape) > 1e5 and kind not in ("f2", "f4", "i4"):
                    continue
                x = cast(self.random.normal(size=shape) * (1 if kind in FLOATS else 3), kind)
                names = ["any", "all", "count"] if kind == "?" else [
                    "sum", "product", "min", "max", "log_sum_exp", "any", "all", "count", *["affine"] * (shape[-1] == 2 and len(shape) > 1)]
                for name in names:
                    words = ["--with", name, "--axis", axis, *(["--reverse"] if name in ("sum", "any") else []),
                             *(["--exclusive"] if name in ("max", "log_sum_exp") else [])]
                    y = self.array("scan", self.save("x.npy", x), *words)
                    for order in "CF":
                        self.stream(bytes_of(np.array(x, order=order)), "scan", "-", *words, "-o", self.path("s.npy"))
                        self.assertSameBits(np.load(self.path("s.npy")), y, (shape, kind, name, order))
        data = bytes_of(np.ones(5, "f4"))
        for name in ["sum", "any", "count", "log_sum_exp"]:
            self.fails(1, "scan", "-", "--with", name, "-o", self.path("no.npy"), stdin=data[:-1], says=["standard input", "19"])

    def test_products_that_leave_the_range_and_come_back(self):
        for kind, e in [("f2", 15), ("bf16", 120), ("f4", 120), ("f8", 1000)]:
            powers = np.array([e] * 6 + [-e] * 12 + [e] * 6 + [0])
            signs = np.resize([1, 1, -1], powers.size)
            x = cast(signs * np.ldexp(1.0, powers), kind)
            with np.errstate(over="ignore"):
                y = cast(signs.cumprod() * np.ldexp(1.0, powers.cumsum()), kind)
            self.assertSameBits(widen(self.array("scan", self.save("x.npy", x), "--with", "product")), widen(y), kind)
            many = cast(np.resize([2, 0.5], 20000), kind)
            self.assertSameBits(widen(self.array("scan", self.save("x.npy", many), "--with", "product")),
                                widen(cast(np.resize([2, 1], 20000), kind)), kind)

    def test_special_values(self):
        x = np.array([1, np.inf, 2, np.nan, 3], "f4")
        self.assertTrue(np.isnan(self.array("scan", self.save("x.npy", x), "--with", "max")[3:]).all())
        for name in ["sum", "product", "min", "max", "log_sum_exp"]:
            y = self.array("scan", self.path("x.npy"), "--with", name)
            self.assertTrue(np.isnan(y[3:]).all() and not np.isnan(y[:3]).any(), name)
        self.assertSameBits(self.array("scan", self.save("x.npy", np.full(4, -np.inf)), "--with", "log_sum_exp"), np.full(4, -np.inf))
        self.assertSameBits(self.array("scan", self.save("x.npy", np.array([-0.0, -0.0])), "--with", "sum"), np.zeros(2))
        self.assertSameBits(self.array("scan", self.save("x.npy", np.array([True, False, True])), "--with", "all"), np.array([True, False, False]))
        self.assertSameBits(self.array("scan", self.path("x.npy"), "--with", "count", "--exclusive"), np.arange(3))
        self.assertSameBits(self.array("scan", self.save("x.npy", np.array([0.0, -0.0, np.nan, 0.0])), "--with", "any"), np.array([False, False, True, True]))

    def test_affine(self):
        for kind in TYPES:
            integer = kind in ("i4", "i8")
            n = 40 if integer else 5000
            x = self.random.normal(size=(3, n, 2)) * (2 if integer else 1)
            if not integer:
                x[..., 0] = np.clip(x[..., 0], -1, 1)
            x = cast(x, kind)
            for axis, reverse, exclusive in [(-2, False, False), (0, False, False), (1, True, False), (1, False, True)]:
                got = self.array("scan", self.save("x.npy", x), "--with", "affine", "--axis", axis,
                                 *["--reverse"] * reverse, *["--exclusive"] * exclusive)
                self.assertEqual((got.shape, got.dtype), (x.shape, x.dtype))
                wide = np.moveaxis(widen(x).astype("i8" if integer else np.longdouble), axis, 0)
                wide = wide[::-1] if reverse else wide
                a, b = np.ones_like(wide[0, ..., 0]), np.zeros_like(wide[0, ..., 0])
                rows, size = [], []
                total = np.zeros(b.shape, np.longdouble)
                for row in wide:
                    if exclusive:
                        rows.append(np.stack([a, b], -1))
                    with np.errstate(over="ignore"):
                        a, b = row[..., 0] * a, row[..., 0] * b + row[..., 1]
                    total = total + np.abs(row[..., 1])
                    if not exclusive:
                        rows.append(np.stack([a, b], -1))
                    size.append(total)
                y = np.stack(rows)
                z = np.moveaxis(widen(got), axis, 0)
                z = z[::-1] if reverse else z
                if integer:
                    self.assertSameBits(np.ascontiguousarray(z), y.astype(kind), (kind, axis))
                    continue
                u = accumulated(kind)
                count = len(size)
                bound = np.stack([count * 2 * u * np.abs(y[..., 0]), 4 * count * u * np.stack(size)], -1) + UNIT[kind] * np.abs(y)
                self.assertWithin(z, y, bound + 1e-37 + SMALLEST[kind], (kind, axis))
            y = self.array("scan", self.save("x.npy", x), "--with", "affine")
            for threads in [1, 3]:
                self.assertSameBits(self.array("scan", self.path("x.npy"), "--with", "affine", "--threads", threads), y)
            self.assertSameBits(self.array("scan", self.save("f.npy", np.asfortranarray(x)), "--with", "affine"), y)
        self.fails(1, "scan", self.save("x.npy", np.zeros((4, 3))), "--with", "affine", "-o", self.path("y.npy"), says=["x.npy", "(4, 3)"])
        self.fails(1, "scan", self.save("x.npy", np.zeros(2)), "--with", "affine", "-o", self.path("y.npy"), says="(2,)")
        self.fails(1, "scan", self.save("x.npy", np.zeros((3, 2))), "--with", "affine", "--axis", "1", "-o", self.path("y.npy"), says="pairs")
        self.fails(1, "scan", self.save("x.npy", np.zeros((3, 2), "?")), "--with", "affine", "-o", self.path("y.npy"), says="bool")

    def test_shapes(self):
        self.fails(1, "scan", self.save("x.npy", np.float64(1)), "--with", "sum", "-o", self.path("y.npy"), says=["x.npy", "()"])
        self.fails(1, "scan", self.save("x.npy", np.zeros((2, 3))), "--with", "sum", "--axis", "2", "-o", self.path("y.npy"), says="(2, 3)")
        self.fails(1, "scan", self.save("x.npy", np.zeros(3, "?")), "--with", "max", "-o", self.path("y.npy"), says=["bool", "max"])
        for shape in [(0,), (3, 0), (0, 3)]:
            for exclusive in ([], ["--exclusive"], ["--reverse"]):
                self.assertEqual(self.array("scan", self.save("x.npy", np.zeros(shape, "i4")), "--with", "min", *exclusive).shape, shape)


if __name__ == "__main__":
    main()
