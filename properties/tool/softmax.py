# SPDX-License-Identifier: Apache-2.0
# regroup softmax against NumPy in long double, within the bound computed from the input; special values; the same bits.
import io

import numpy as np

from support import FLOATS, SMALLEST, UNIT, Case, accumulated, cast, main, steps, widen


def bytes_of(array):
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


class Softmax(Case):
    def check(self, x, kind, axis=None, scale=1.0):
        words = [] if axis is None else ["--axis", axis]
        words += [] if scale == 1.0 else ["--scale", repr(scale)]
        path = self.save("x.npy", x)
        p = self.array("softmax", path, *words, "--lse", self.path("l.npy"))
        lse = np.load(self.path("l.npy"))
        log_p = self.array("softmax", path, *words, "--log")
        self.assertEqual((p.dtype, p.shape, log_p.dtype), (x.dtype, x.shape, x.dtype))
        axis = -1 if axis is None else axis
        self.assertEqual(lse.dtype, np.dtype("f8" if kind == "f8" else "f4"))
        self.assertEqual(lse.shape, tuple(np.delete(x.shape, axis)))
        real = "f8" if kind == "f8" else "f4"
        z = np.moveaxis(widen(x), axis, -1).astype(real) * np.dtype(real).type(scale)  # the scaled input, rounded once
        wide = z.astype(np.longdouble)
        u, own, n = accumulated(kind), UNIT[kind], wide.shape[-1]
        m = wide.max(axis=-1, keepdims=True)
        w = np.exp(wide - m)
        s = w.sum(axis=-1, keepdims=True)
        h = steps(n)
        relative = u * (w * ((m - wide) + 3 * (1 + h) + h)).sum(axis=-1, keepdims=True) / s
        reference = w / s
        bound = 1.01 * reference * (u * ((m - wide) + 5) + relative + own) + np.finfo(real).tiny + SMALLEST[kind]
        self.assertWithin(np.moveaxis(widen(p), axis, -1), reference, bound, (kind, "softmax"))
        log_reference = (wide - m) - np.log(s)
        bound = 1.01 * (relative + u * (2 * np.abs(wide - m) + 4 * np.abs(np.log(s))) + own * np.abs(log_reference)) + u
        self.assertWithin(np.moveaxis(widen(log_p), axis, -1), log_reference, bound, (kind, "log_softmax"))
        l = (m + np.log(s))[..., 0]
        self.assertWithin(lse, l, 1.01 * (relative[..., 0] + 4 * u * np.abs(np.log(s[..., 0])) + u * np.abs(l)) + u, (kind, "lse"))

    def test_types_axes_and_scales(self):
        x = self.random.normal(size=(4, 5, 67)) * 10
        for kind in FLOATS:
            for axis in [None, 0, 1, 2, -3]:
                for scale in [1.0, 0.125, -2.5, 0.0]:
                    with self.subTest(kind=kind, axis=axis, scale=scale):
                        self.check(cast(x, kind), kind, axis, scale)

    def test_lengths(self):
        for n in [1, 2, 127, 128, 129, 4096, 4097, 30522, 65536, 65537, 200001]:
            with self.subTest(n=n):
                self.check((self.random.normal(size=(2, n)) * 5).astype("f4"), "f4")
        self.check(np.array([1e4, 1e4 + 1, -1e4]), "f8")
        self.check(np.full((3, 5), 3.4e38, "f4"), "f4")

    def test_same_bits(self):
        for n in [37, 5000, 70000]:
            x = (self.random.normal(size=(6, n)) * 4).astype("f4")
            p = self.array("softmax", self.save("x.npy", x))
            for threads in [1, 2, 3, 7]:
                self.assertSameBits(self.array("softmax", self.path("x.npy"), "--threads", threads), p)
            for target in ["baseline", "x86-64-v3"]:
                done = self.run_tool("softmax", self.path("x.npy"), "-o", self.path("p.npy"), env={"REGROUP_TARGET": target})
                if done.returncode == 0:
                    self.assertSameBits(np.load(self.path("p.npy")), p, target)
            self.assertSameBits(self.array("softmax", self.save("f.npy", np.asfortranarray(x))), p)
            self.assertSameBits(self.array("softmax", self.save("b.npy", x.astype(">f4"))), p)
            self.assertSameBits(self.array("softmax", self.save("t.npy", np.ascontiguousarray(x.T)), "--axis", "0").T.copy(), p)
            self.assertSameBits(self.array("softmax", self.save("row.npy", x[4])), p[4])
            self.stream(bytes_of(x), "softmax", "-", "-o", self.path("s.npy"))
            self.assertSameBits(np.load(self.path("s.npy")), p)

    def test_special_values(self):
        nan, inf = np.nan, np.inf
        for kind in FLOATS:
            x = cast(np.array([[1, nan, 2], [1, inf, 2], [-inf] * 3, [-inf, 0, -inf], [inf, inf, -inf], [0, 0, 0]]), kind)
            p = widen(self.array("softmax", self.save("x.npy", x), "--lse", self.path("l.npy")))
            self.assertTrue(np.isnan(p[[0, 1, 2, 4]]).all(), kind)
            self.assertEqual(p[3].tolist(), [0, 1, 0])
            lse = np.load(self.path("l.npy"))
            self.assertTrue(np.isnan(lse[0]))
            self.assertEqual(lse[1:5].tolist(), [inf, -inf, 0, inf])
            log_p = widen(self.array("softmax", self.path("x.npy"), "--log"))
            self.assertTrue(np.isnan(log_p[[0, 1, 2, 4]]).all(), kind)
            self.assertEqual(log_p[3].tolist(), [-inf, 0, -inf])

    def test_empty(self):
        for shape in [(0,), (3, 0), (0, 3), (2, 0, 4)]:
            p = self.array("softmax", self.save("x.npy", np.zeros(shape, "f4")), "--lse", self.path("l.npy"))
            self.assertEqual(p.shape, shape)
            lse = np.load(self.path("l.npy"))
            self.assertEqual(lse.shape, shape[:-1])
            if shape[-1] == 0:
                self.assertTrue((lse == -np.inf).all())

    def test_refusals(self):
        self.fails(1, "softmax", self.save("x.npy", np.float32(1)), "-o", self.path("p.npy"), says=["x.npy", "()"])
        for kind in ["i4", "i8", "?"]:
            self.fails(1, "softmax", self.save("x.npy", np.zeros(3, kind)), "-o", self.path("p.npy"), says=["x.npy", str(np.dtype(kind))])
        self.save("x.npy", np.zeros((2, 3)))
        for axis in ["2", "-3", "99999"]:
            self.fails(1, "softmax", self.path("x.npy"), "-o", self.path("p.npy"), "--axis", axis, says=["x.npy", "(2, 3)", axis])

    def test_scales_that_float32_cannot_hold(self):
        says = ["x.npy", "--scale 1e+39 does not fit float32", "from -3.40282e+38 to 3.40282e+38"]
        for kind in ["f2", "bf16", "f4"]:
            x = self.save("x.npy", cast(np.ones(3), kind))
            self.fails(1, "softmax", x, "-o", self.path("p.npy"), "--scale", "1e39", says=says)
            self.fails(1, "softmax", x, "-o", self.path("p.npy"), "--scale", "-1e39", says="--scale -1e+39")
            self.ok("softmax", x, "-o", self.path("p.npy"), "--scale", "3.4028234e38")
        self.ok("softmax", self.save("x.npy", np.ones(3)), "-o", self.path("p.npy"), "--scale", "1e39")

    def test_streams(self):
        """In blocks of rows, in rows longer than a block, along other axes, of every type and order: the file's bits."""
        for shape, axis in [((3, 5), -1), ((2, 1500000), -1), ((70000, 40), -1), ((70000, 40), 0), ((3, 4, 5), 1), ((7,), 0),
                            ((0, 3), -1), ((2, 0, 4), 1), ((3, 0), -1), ((3, 0), 0)]:
            kinds = FLOATS if np.prod(shape) < 1e6 else ["f4"]
            for kind, order, log in [(k, o, log) for k in kinds for o in "CF" for log in ([], ["--log"])]:
                x = np.array(cast(self.random.normal(size=shape) * 4, kind), order=order)
                words = ["--axis", axis, "--scale", "0.7", *log]
                p = self.array("softmax", self.save("x.npy", x), *words, "--lse", self.path("l.npy"))
                self.stream(bytes_of(x), "softmax", "-", *words, "-o", self.path("s.npy"), "--lse", self.path("m.npy"))
                about = (shape, axis, kind, order)
                self.assertSameBits(np.load(self.path("s.npy")), p, about)
                self.assertSameBits(np.load(self.path("m.npy")), np.load(self.path("l.npy")), about)
        x = self.random.normal(size=(5, 7)).astype(">f4")
        self.stream(bytes_of(x), "softmax", "-", "-o", self.path("s.npy"))
        self.assertSameBits(np.load(self.path("s.npy")), self.array("softmax", self.save("x.npy", x)))
        for size in [100, len(bytes_of(x)) - 1]:
            self.fails(1, "softmax", "-", "-o", self.path("no.npy"), stdin=bytes_of(x)[:size], says="standard input")

    def test_json(self):
        x = self.save("x.npy", np.zeros((2, 3), "f4"))
        self.assertEqual(self.json("softmax", x, "-o", self.path("p.npy")),
                         {"output": {"path": self.path("p.npy"), "type": "float32", "shape": [2, 3]}})


if __name__ == "__main__":
    main()
