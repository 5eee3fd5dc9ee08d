# SPDX-License-Identifier: Apache-2.0
# --device cuda has the bits of --device cpu: every command, type, order and option, with a stand-in for the GPU whose verbs
# are the sequential executor's (support/gpu_on_cpu.cpp). So this tests what the tool does around them.
import io
import json
import os

import numpy as np

from support import FLOATS, TYPES, Case, cast, main

KINDS = [*TYPES, ">f4", ">i8", "?"]


def bytes_of(array):
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


class OnGpu(Case):
    def both(self, x, *words, outputs=("o.npy",)):
        """The same files from a GPU as from a CPU; the array from a file, C and Fortran order, and from a stream."""
        def run(device, source, stdin=None):
            for name in outputs:
                if os.path.exists(self.path(name)):
                    os.remove(self.path(name))
            command = [words[0], source, *words[1:], "--device", device]
            told = self.stream(stdin, *command) if stdin is not None else self.ok(*command)
            return [np.load(self.path(name)) for name in outputs], told
        expected = run("cpu", self.save("x.npy", x))
        for source, stdin in [(self.path("x.npy"), None), (self.save("f.npy", np.array(x, order="F")), None), ("-", bytes_of(x))]:
            got = run("cuda", source, stdin)
            for a, b in zip(got[0], expected[0]):
                self.assertSameBits(a, b, (words, x.dtype, x.shape, source))
            if not outputs:
                self.assertEqual(got[1], expected[1], (words, x.dtype, x.shape, source))

    def test_softmax(self):
        for kind in [*FLOATS, ">f4"]:
            for shape, axis in [((3, 40), -1), ((4, 3, 5), 1), ((5000,), 0), ((2, 70000), 1), ((0, 3), 1), ((3, 0), 1)]:
                x = cast(3 * self.random.normal(size=shape), kind)
                self.both(x, "softmax", "-o", self.path("o.npy"), "--lse", self.path("l.npy"), "--axis", axis, "--scale", "0.7",
                          outputs=("o.npy", "l.npy"))
            self.both(x, "softmax", "-o", self.path("o.npy"), "--log")

    def test_reduce(self):
        for kind in KINDS:
            for shape, axes in [((3, 4, 50), "-1"), ((3, 4, 50), "0"), ((3, 4, 50), "0,2"), ((3, 4, 50), None), ((9001,), None),
                                ((), None), ((2, 5000), "1")]:
                x = cast(2 * self.random.normal(size=shape or 1), kind).reshape(shape)
                real = [] if kind == "?" else ["sum", "product", "min", "max", "argmin", "argmax", "mean", "moments", "log_sum_exp"]
                words = ["--with", ",".join(["any", "all", "count", *real]), *(["--axis", axes] if axes else []), "--keepdims"]
                self.both(x, "reduce", *words, "--json", outputs=())
            for shape, axis in [((0, 3), "0"), ((3, 0), "1")]:
                names = "any,all,count" if kind == "?" else "sum,product,min,max,count,any,all,log_sum_exp"
                self.both(np.zeros(shape, "u2").view("V2") if kind == "bf16" else np.zeros(shape, kind), "reduce", "--with", names,
                          "--axis", axis, outputs=())
        special = np.array([[0.5, -0.0, 0.0], [np.nan, 1, 2], [-np.inf, np.inf, 3]], "f4")
        self.both(special, "reduce", "--with", "any,all,min,max,argmin,argmax,sum,log_sum_exp", "--axis", "1", outputs=())

    def test_scan(self):
        for kind in KINDS:
            for shape, axis in [((3, 4, 150), 2), ((3, 4, 150), 0), ((9001,), 0), ((0, 3), 1), ((2, 60, 2), 1)]:
                x = cast(3 * self.random.normal(size=shape), kind)
                names = ["any", "all", "count"]
                if kind != "?":
                    names += ["sum", "product", "min", "max", "log_sum_exp", *["affine"] * (len(shape) == 3 and shape[-1] == 2)]
                for name in names:
                    for flags in [[], ["--exclusive"], ["--reverse"], ["--reverse", "--exclusive"]]:
                        if flags and np.prod(shape) > 5000:
                            continue
                        self.both(x, "scan", "--with", name, "-o", self.path("o.npy"), "--axis", axis, *flags)

    def test_attention(self):
        h, n, m, d, dv = 4, 5, 70, 8, 6
        slopes = self.save("a.npy", self.random.normal(size=h))
        sinks = self.save("s.npy", self.random.normal(size=h).astype("f4"))
        bias = self.save("bias.npy", np.where(self.random.random((h, 1, m)) < 0.2, -np.inf, self.random.normal(size=(h, 1, m))))
        seen = self.save("seen.npy", self.random.random((n, m)) < 0.7)
        lengths = self.save("n.npy", np.array([m, 0]))
        for kind in ["f2", "bf16", "f4"]:
            q, k, v = (cast(self.random.normal(size=s), kind) for s in [(2, h, n, d), (2, 2, m, d), (2, 2, m, dv)])
            k_file, v_file = self.save("k.npy", np.asfortranarray(k)), self.save("v.npy", v)
            for options in [[], ["--causal"], ["--causal=top-left", "--softcap", "2"], ["--window", "3,1", "--alibi", slopes],
                            ["--mask", bias, "--sinks", sinks, "--scale", "0.3"], ["--mask", seen, "--kv-lengths", lengths],
                            ["--mask", bias, "--causal", "--window", "20,-1", "--softcap", "5", "--alibi", slopes, "--split", "1"]]:
                self.both(q, "attention", k_file, v_file, "-o", self.path("o.npy"), "--lse", self.path("l.npy"), *options,
                          outputs=("o.npy", "l.npy"))
            pool_k, pool_v = (cast(self.random.normal(size=(9, 2, 16, s)), kind) for s in (d, dv))
            table = np.array([[3, 1, 8, 0], [2, 7, -1, 99]], "i4")  # the last two are not looked at
            self.both(q, "attention", self.save("k.npy", pool_k), self.save("v.npy", pool_v), "-o", self.path("o.npy"), "--page-table",
                      self.save("t.npy", table), "--kv-lengths", self.save("n.npy", np.array([64, 20], "i4")))
        infinite = np.zeros((1, 2, 2), "f4")
        infinite[0, 0] = [-np.inf, 1]  # a score of -inf that a bias of +inf would make NaN
        plus = self.save("bias.npy", np.full((2, 2), np.inf, "f4"))
        lowest = self.save("lowest.npy", np.full((2, 2), np.finfo("f8").min))  # finite in float32 too
        for options in [[], ["--mask", plus], ["--softcap", "3", "--mask", plus], ["--mask", lowest]]:
            self.both(infinite, "attention", self.save("k.npy", np.ones((1, 2, 2), "f4")), self.save("v.npy", np.ones((1, 2, 2), "f4")),
                      "-o", self.path("o.npy"), *options)

    def test_what_stays_on_the_cpu(self):
        x = self.save("x.npy", np.zeros((1, 2, 2)))
        self.fails(1, "attention", x, x, x, "-o", self.path("o.npy"), "--device", "cuda", says=["x.npy", "float64", "--device cpu"])

    def test_info(self):
        told = json.loads(self.ok("info", "--json", "--device", "cuda"))
        self.assertEqual(told["gpu"], {"name": "a stand-in", "compute_capability": "8.0", "memory_bytes": 1 << 30})
        self.assertIn("\ngpu a stand-in, compute capability 8.0, 1.00 GiB\n", self.ok("info"))


if __name__ == "__main__":
    main()
