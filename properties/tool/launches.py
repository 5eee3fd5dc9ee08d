# SPDX-License-Identifier: Apache-2.0
# The host's part of the tool's CUDA files, over a runtime without kernels (support/no_kernels.cpp): every verb, type, shape and
# option reaches its launches without an error.
import numpy as np

from support import TYPES, Case, cast, main


class Launches(Case):
    def launches(self, *words):
        self.ok(*words, "--device", "cuda", env={"REGROUP_LAUNCHES": self.path("launches")})
        with open(self.path("launches")) as f:
            return int(f.read())

    def test_rows(self):
        y = self.path("y.npy")
        for kind in [*TYPES, "?"]:
            for shape in [(3, 4, 30), (9001,), (2, 70000), (0, 3), (3, 0), (2, 60, 2)]:
                x = self.save("x.npy", cast(np.ones(shape), kind))
                least = 1 if 0 not in shape else 0
                if kind in ("f2", "bf16", "f4", "f8"):
                    for more in [["--lse", self.path("l.npy")], ["--log", "--axis", "0"]]:
                        self.assertGreaterEqual(self.launches("softmax", x, "-o", y, *more), least, (kind, shape))
                scans = ["any", "all", "count"] + ["sum", "product", "min", "max", "log_sum_exp"] * (kind != "?")
                reductions = scans + ["argmin", "argmax", "mean", "moments"] * (kind != "?" and least)
                for axis in [["--axis", "-1"], []]:
                    count = self.launches("reduce", x, "--with", ",".join(reductions), *axis)
                    self.assertGreaterEqual(count, least * len(reductions), (kind, shape, axis))
                for name in scans + ["affine"] * (shape[-1] == 2 and kind != "?"):
                    self.assertGreaterEqual(self.launches("scan", x, "--with", name, "-o", y, "--exclusive"), least, (kind, shape, name))

    def test_attention(self):
        h, n, m, d, dv = 4, 5, 70, 8, 6
        heads, bias = self.save("a.npy", np.ones(h)), self.save("b.npy", np.ones((h, 1, m)))
        seen, lengths = self.save("s.npy", np.ones((n, m), "?")), self.save("n.npy", np.array([m, 0]))
        q, k, v = (self.save(f + ".npy", np.ones(s, "f4")) for f, s in [("q", (2, h, n, d)), ("k", (2, 2, m, d)), ("v", (2, 2, m, dv))])
        for options in [[], ["--causal"], ["--window", "3,1", "--alibi", heads], ["--mask", bias, "--sinks", heads],
                        ["--mask", seen, "--kv-lengths", lengths], ["--softcap", "2", "--lse", self.path("l.npy")]]:
            self.assertGreaterEqual(self.launches("attention", q, k, v, "-o", self.path("o.npy"), *options), 1, options)
        pools = [self.save("k.npy", np.ones((9, 2, 16, d), "f2")), self.save("v.npy", np.ones((9, 2, 16, dv), "f2"))]
        self.launches("attention", self.save("q.npy", np.ones((2, h, n, d), "f2")), *pools, "-o", self.path("o.npy"), "--page-table",
                      self.save("t.npy", np.array([[3, 1], [2, -1]])), "--kv-lengths", self.save("n.npy", np.array([32, 16])))
        nothing = [self.save(f + ".npy", np.ones((0, 8), "f4")) for f in "qkv"]
        self.assertEqual(self.launches("attention", *nothing, "-o", self.path("o.npy"), "--lse", self.path("l.npy")), 0)


if __name__ == "__main__":
    main()
