# SPDX-License-Identifier: Apache-2.0
# regroup attention with its options combined at random against float64 within the computed bound; what windows, softcap,
# ALiBi and sinks do at their edges; states saved, merged in any partition and order, and what is refused.
import os
import signal
import subprocess
import time

import numpy as np

from support import FLOATS, TOOL, cast, main, widen
from support.attention import AttentionCase, reference


class Options(AttentionCase):
    def random_options(self, b, h, nq, nk, rank):
        """Options of `reference`, each switched on half of the time."""
        r = self.random
        on = lambda: r.random() < 0.5
        o = {}
        if on():
            o["scale"] = float(r.choice([-0.3, 0.05, 0.7]))
        if on():
            o["causal"] = str(r.choice(["bottom-right", "top-left"]))
        if on():
            o["window"] = tuple(int(x) for x in r.integers(-1, max(nk, 2), 2))
        if on():
            o["softcap"] = float(r.choice([0.5, 3, 30]))
        if on():
            o["alibi"] = cast(2.0 ** -r.integers(0, 8, h) * r.choice([1, 1, -1], h), str(r.choice(FLOATS)))
        if on():
            o["sinks"] = cast(r.normal(size=h) * 3, str(r.choice(FLOATS)))
        if on():
            shape = [(b, h, nq, nk)[a] if on() else 1 for a in range(4)][4 - rank:]
            if on():
                o["mask"] = r.random(shape) < 0.7
            else:
                bias = np.where(r.random(shape) < 0.2, -np.inf, r.normal(size=shape) * 2)
                o["mask"] = cast(bias, str(r.choice(FLOATS)))
        if on():
            o["lengths"] = r.integers(0, nk + 1, b).astype(str(r.choice(["i4", "i8"])))
        return o

    def test_options_combined_at_random(self):
        r = self.random
        for _ in range(200):
            kind = str(r.choice(FLOATS))
            rank = int(r.integers(2, 5))
            b, hkv = (int(r.integers(1, 4)) if rank == 4 else 1), (int(r.integers(1, 3)) if rank > 2 else 1)
            h = hkv * (int(r.integers(1, 4)) if rank > 2 else 1)
            nq, nk = int(r.choice([1, 2, 9, 33, 70])), int(r.choice([1, 5, 64, 65, 200, 1100]))
            d, dv = int(r.choice([1, 3, 8, 64])), int(r.choice([1, 5, 8, 33]))
            q, k, v = self.inputs(kind, (b, h, nq, d)[4 - rank:], (b, hkv, nk, d)[4 - rank:], dv=dv)
            options = self.random_options(b, h, nq, nk, rank)
            words = ["--split", str(r.integers(1, 9))] if r.random() < 0.3 else []
            with self.subTest(kind=kind, q=q.shape, k=k.shape, words=words, options=options):
                self.check(q, k, v, kind, *words, **options)

    def test_pages_beside_every_option(self):
        r = self.random
        for size in [1, 3, 16, 64, 100]:
            b, hkv, pages = 2, 2, 5
            nk = size * pages
            q, k, v = self.inputs("f4", (b, 4, 7, 8), (b, hkv, nk, 8), dv=6)
            order = r.permutation(b * pages).reshape(b, pages).astype("i4")
            pools = [np.empty((b * pages, hkv, size, x.shape[-1]), "f4") for x in (k, v)]
            for x, pool in zip((k, v), pools):
                for e in range(b):
                    for p in range(pages):
                        pool[order[e, p]] = x[e, :, p * size:(p + 1) * size]
            for _ in range(5):
                words, arrays = self.options(**self.random_options(b, 4, 7, nk, 4))
                dense = self.attend(q, k, v, *words, **arrays)
                paged = self.attend(q, *pools, *words, page_table=order, **arrays)
                self.assertSameBits(paged[0], dense[0])
                self.assertSameBits(paged[1], dense[1])

    def test_shared_pages(self):
        pools = [cast(self.random.normal(size=(3, 2, 8, 4)), "f4") for _ in range(2)]
        q = cast(self.random.normal(size=(2, 2, 5, 4)), "f4")
        table = np.array([[0, 1], [0, 2]], "i4")
        dense = [np.concatenate([x[table[:, p]] for p in range(2)], axis=2) for x in pools]
        self.assertSameBits(self.attend(q, *pools, "--causal", page_table=table)[0], self.attend(q, *dense, "--causal")[0])

    def test_windows(self):
        for nq, nk in [(9, 200), (200, 9), (70, 70), (1, 1)]:
            q, k, v = self.inputs("f4", (2, nq, 8), (2, nk, 8))
            for window in [(-1, -1), (0, 0), (3, -1), (-1, 3), (5, 2), (0, 10**12), (10**18, 0), (9223372036854775807,) * 2]:
                for causal in [None, "bottom-right", "top-left"]:
                    self.check(q, k, v, "f4", window=window, causal=causal)
        self.assertSameBits(self.attend(q, k, v, "--window", "-1,0")[0], self.attend(q, k, v, "--causal")[0])
        self.assertSameBits(self.attend(q, k, v, "--window=-1,-1")[0], self.attend(q, k, v)[0])

    def test_a_query_has_its_bits_alone(self):
        q, k, v = self.inputs("f4", (2, 40, 16), (2, 1500, 16))
        slopes = np.array([0.5, 0.0625], "f4")
        words = ["--causal", "--window", "700,-1", "--softcap", "20"]
        o, lse = self.attend(q, k, v, *words, alibi=slopes)
        for i in [0, 17, 39]:
            keys = 1500 - 40 + i + 1
            got = self.attend(q[:, i:i + 1].copy(), k[:, :keys].copy(), v[:, :keys].copy(), *words, alibi=slopes)
            self.assertSameBits(got[0], o[:, i:i + 1].copy())
            self.assertSameBits(got[1], lse[:, i:i + 1].copy())
        for threads in [1, 3]:
            self.assertSameBits(self.attend(q, k, v, *words, "--threads", threads, alibi=slopes)[0], o)

    def test_a_mask_beyond_the_range_of_float(self):
        """A finite number of a float64 mask stays finite: only -inf hides."""
        for kind in ["f4", "f2", "bf16", "f8"]:
            q, k, v = self.inputs(kind, (6, 8), (40, 8))
            whole = self.random.normal(size=(6, 40))
            whole[:, ::3] = np.finfo("f8").min
            whole[1] = np.finfo("f8").min  # all keys alike
            whole[2, 5] = -np.inf
            whole[3] = -1e300
            whole[3, 7] = 1e300  # this key alone
            most = np.finfo("f4").max
            clamped = np.where(np.isinf(whole), whole, np.clip(whole, -most, most))
            o, lse = self.attend(q, k, v, mask=whole)
            self.assertTrue(np.isfinite(widen(o)).all() and np.isfinite(lse).all(), kind)
            if kind != "f8":
                expected = self.attend(q, k, v, mask=clamped.astype("f4"))
                self.assertSameBits(o, expected[0], kind)
                self.assertSameBits(lse, expected[1], kind)
            self.assertSameBits(o[3], v[7], kind)
            self.assertWithin(widen(o)[1], widen(v).astype("f8").mean(axis=0), 1e-2, kind)

    def test_softcap_at_its_edges(self):
        q, k, v = self.inputs("f4", (3, 8), (40, 8), size=3)
        for cap in [1e-300, 1e-30, 1.0, 1e30, 1e300]:
            self.check(q, k, v, "f4", softcap=cap)
        self.assertSameBits(self.attend(q, k, v, "--softcap", "1e300")[0], self.attend(q, k, v)[0])
        q, k = -np.abs(q), k.copy()
        k[7] = np.inf  # a score of -inf is capped too, and visible
        o, lse = self.attend(q, k, v, "--softcap", "2", "--scale", "1")
        with np.errstate(all="ignore"):
            s = 2 * np.tanh(np.einsum("id,jd->ij", q.astype("f8"), k.astype("f8")) / 2)
        w = np.exp(s)
        self.assertWithin(o, w @ v.astype("f8") / w.sum(-1, keepdims=True), 1e-5)
        self.assertWithin(lse, np.log(w.sum(-1)), 1e-5)

    def test_scales_that_float32_cannot_hold(self):
        for kind in FLOATS:
            q = self.save("q.npy", cast(self.random.normal(size=(3, 4)), kind))
            words = ["attention", q, q, q, "-o", self.path("o.npy"), "--scale"]
            if kind != "f8":
                self.fails(1, *words, "-1e39", says=["q.npy", "--scale -1e+39 does not fit float32", "to 3.40282e+38"])
            else:
                self.ok(*words, "-1e39")
                os.unlink(self.path("o.npy"))

    def test_sinks(self):
        q, k, v = self.inputs("f4", (2, 4, 6, 8), (2, 2, 300, 8), dv=5)
        for sinks in [np.array([0, -3, 80, -np.inf], "f4"), np.array([1, 2, 3, 4.5], "f8")]:
            whole = self.check(q, k, v, "f4", sinks=sinks)
            for split in ["2", "7"]:
                self.check(q, k, v, "f4", "--split", split, sinks=sinks)
        self.assertSameBits(self.attend(q, k, v, sinks=np.full(4, -np.inf, "f4"))[0], self.attend(q, k, v)[0])
        o, lse = self.attend(q, k, v, mask=np.zeros((1, 300), bool), sinks=sinks)
        self.assertTrue((o == 0).all())
        self.assertSameBits(lse, np.broadcast_to(sinks.astype("f4")[:, None], (2, 4, 6)).copy())
        o, lse = self.attend(q, k, v, mask=np.zeros((1, 300), bool), sinks=np.full(4, -np.inf))
        self.assertTrue((o == 0).all() and (lse == -np.inf).all())
        k, v = k.copy(), v.copy()
        k[:, :, 290:], v[:, :, 290:] = np.nan, np.inf  # past the lengths
        self.check(q, k, v, "f4", sinks=sinks, lengths=np.array([290, 12]), softcap=10.0, window=(5, -1))

    def test_numbers_of_heads_beyond_float32(self):
        for kind in ["f2", "f4", "f8"]:
            q, k, v = self.inputs(kind, (4, 6, 8), (2, 30, 8))
            for number in [1e39, -1e300]:
                for name, what in [("sinks", "the sink"), ("alibi", "the ALiBi slope")]:
                    words = self.command(q, k, v, "-o", self.path("o.npy"), **{name: np.array([0, 1, number, 2])})
                    if kind == "f8":
                        self.ok(*words)
                        os.unlink(self.path("o.npy"))
                    else:
                        self.fails(1, *words, says=[f"{name}.npy: {what} {number:g} does not fit float32", "to 3.40282e+38"])

    def test_hidden_keys_do_not_matter_whatever_is_done_to_scores(self):
        q, k, v = self.inputs("f4", (2, 4, 6, 8), (2, 2, 200, 8), size=1)
        seen = self.random.random((2, 1, 1, 200)) < 0.7
        hides = dict(mask=seen, alibi=np.array([1, .5, .25, .125]), sinks=np.ones(4))
        words = ["--softcap", "5", "--window", "150,-1", "--causal"]
        expected = self.attend(q, k, v, *words, **hides)
        for bad in [np.nan, np.inf, -np.inf]:
            k2, v2 = k.copy(), v.copy()
            hidden = ~np.broadcast_to(seen[:, :, 0, :], (2, 2, 200))
            k2[hidden], v2[hidden] = bad, bad
            k2[:, :, :40], v2[:, :, :40] = bad, bad  # left of every window
            for keys, values in [(k2, v), (k, v2), (k2, v2)]:
                got = self.attend(q, keys, values, *words, **hides)
                self.assertSameBits(got[0], expected[0], bad)
                self.assertSameBits(got[1], expected[1], bad)

    def test_extents(self):
        for q_shape, k_shape, dv in [((2, 3, 576), (2, 70, 576), 512), ((2, 3, 0), (2, 7, 0), 4), ((2, 3, 4), (2, 7, 4), 0),
                                     ((2, 0, 4), (2, 7, 4), 3), ((2, 3, 4), (2, 0, 4), 3), ((0, 3, 4), (0, 7, 4), 3),
                                     ((3, 4), (0, 4), 2), ((1, 1, 1, 1), (1, 1, 1, 1), 1)]:
            for kind in ["f4", "f2", "f8"]:
                q, k, v = self.inputs(kind, q_shape, k_shape, dv=dv)
                with self.subTest(q=q_shape, k=k_shape, dv=dv, kind=kind):
                    self.check(q, k, v, kind, causal="bottom-right", window=(3, -1), softcap=2.0)
                    self.check(q, k, v, kind, "--split", "3", sinks=np.ones(q_shape[0] if len(q_shape) > 2 else 1))

    def test_wrong_arrays(self):
        q, k, v = self.inputs("f4", (2, 4, 6, 8), (2, 2, 10, 8))
        good = self.command(q, k, v, "-o", self.path("x.npy"))
        for option in ["--alibi", "--sinks"]:
            for bad, says in [(np.ones(3), "(3)"), (np.ones((1, 4)), "(1, 4)"), (np.ones(4, "i8"), "int64"),
                              (np.ones(4, bool), "bool"), (np.float32(1), "()")]:
                self.fails(1, *good, option, self.save("bad.npy", bad), says=["bad.npy", says.replace("(3)", "(3,)")])


class States(AttentionCase):
    def state(self, name, q, k, v, *words, **arrays):
        self.ok(*self.command(q, k, v, *words, "--state-out", self.path(name), **arrays))
        return self.path(name)

    def merged(self, *folders):
        o = self.array("merge", *folders, "--lse", self.path("lse.npy"))
        return o, np.load(self.path("lse.npy"))

    def test_the_three_files(self):
        for kind in FLOATS:
            q, k, v = self.inputs(kind, (2, 4, 6, 8), (2, 2, 30, 8), dv=5)
            folder = self.state("s", q, k, v, "--causal")
            m, l, o = (np.load(os.path.join(folder, n + ".npy")) for n in "mlo")
            real = np.dtype("f8" if kind == "f8" else "f4")
            self.assertEqual((m.dtype, l.dtype, o.dtype), (real,) * 3)
            self.assertEqual((m.shape, l.shape, o.shape), ((2, 4, 6), (2, 4, 6), (2, 4, 6, 5)))
            expected, lse, bound, lse_bound = reference(widen(q), widen(k), widen(v), kind, causal="bottom-right")
            self.assertWithin(o / l[..., None], expected, bound)
            self.assertWithin(m + np.log(l), lse, lse_bound + 4 * np.finfo(real).eps * (1 + np.abs(lse)))
            self.assertEqual(sorted(os.listdir(folder)), ["l.npy", "m.npy", "o.npy"])

    def test_with_an_output_too(self):
        q, k, v = self.inputs("f2", (2, 6, 8), (2, 3000, 8), dv=5)
        plain = self.attend(q, k, v, "--window", "900,5")
        both = self.attend(q, k, v, "--window", "900,5", "--state-out", self.path("new/deep/s"))
        self.assertSameBits(both[0], plain[0])
        self.assertSameBits(both[1], plain[1])
        self.ok(*self.command(q, k, v, "--window", "900,5", "--state-out", self.path("s"), "--lse", self.path("only.npy")))
        self.assertSameBits(np.load(self.path("only.npy")), plain[1])
        merged = self.merged(self.path("s"))
        self.assertEqual(merged[0].dtype, np.dtype("f4"))
        self.assertSameBits(merged[0].astype("f2"), plain[0])
        self.assertSameBits(merged[1], plain[1])
        told = self.json(*self.command(q, k, v, "--state-out", self.path("s")))
        self.assertEqual(told["state"]["o"], {"path": self.path("s/o.npy"), "type": "float32", "shape": [2, 6, 5]})
        self.assertEqual(list(told), ["state"])

    def test_states_of_two_commands_do_not_mix(self):
        """Whoever reads a directory finds the state of one command or of another: keys and values of n give 8 n and n."""
        q = self.save("q.npy", np.ones((1, 8), "f4"))
        calls = [[TOOL, "attention", q, x, x, "--scale", "1", "--state-out", self.path("s")]
                 for x in (self.save(f"{n}.npy", np.full((1, 8), n, "f4")) for n in (1, 2))]
        subprocess.run(calls[0], check=True)
        for _ in range(40):
            running = [subprocess.Popen(call) for call in 2 * calls]
            while any(process.poll() is None for process in running):
                o, lse = self.merged(self.path("s"))
                self.assertEqual(lse, 8 * o[0, 0])
            self.assertEqual([process.wait() for process in running], [0] * 4)

    def test_any_partition_in_any_order(self):
        r = self.random
        for kind in FLOATS:
            for _ in range(6):
                b, h, hkv, nq, nk = 2, 4, 2, int(r.choice([1, 7])), 300
                q, k, v = self.inputs(kind, (b, h, nq, 8), (b, hkv, nk, 8), dv=5)
                seen = r.random((b, 1, nq, nk)) < 0.5
                cuts = np.sort(r.integers(0, nk + 1, int(r.integers(0, 7))))
                cuts = [0, *cuts, nk]
                folders = []
                for n, (first, last) in enumerate(zip(cuts, cuts[1:])):  # pieces may be empty
                    piece = [np.ascontiguousarray(x[:, :, first:last]) for x in (k, v)]
                    folders.append(self.state(f"s{n}", q, *piece, "--softcap", "4.0", mask=seen[..., first:last].copy()))
                options = dict(softcap=4.0, mask=seen)
                o, lse, bound, lse_bound = reference(widen(q), widen(k), widen(v), kind, **options)
                for order in [folders, folders[::-1], [folders[i] for i in r.permutation(len(folders))]]:
                    got = self.merged(*order)
                    self.assertWithin(got[0], o, bound)
                    self.assertWithin(got[1], lse, lse_bound)

    def test_states_of_no_keys(self):
        q, k, v = self.inputs("f4", (2, 3, 8), (2, 0, 8), dv=5)
        empty = self.state("empty", q, k, v)
        m, l, o = (np.load(os.path.join(empty, n + ".npy")) for n in "mlo")
        self.assertTrue((m == -np.inf).all() and (l == 0).all() and (o == 0).all() and o.shape == (2, 3, 5))
        self.assertFalse(np.signbit(o).any())
        got = self.merged(empty, empty, empty)
        self.assertTrue((got[0] == 0).all() and (got[1] == -np.inf).all())
        q, k, v = (q, *self.inputs("f4", (2, 3, 8), (2, 40, 8), dv=5)[1:])
        some = self.state("some", q, k, v)
        alone = self.merged(some)
        for order in [(empty, some), (some, empty), (empty, empty, some, empty)]:
            got = self.merged(*order)
            self.assertSameBits(got[0], alone[0])
            self.assertSameBits(got[1], alone[1])

    def test_states_from_elsewhere(self):
        """Fortran order, the other byte order, and garbage beside m = -inf."""
        q, k, v = self.inputs("f8", (4, 6, 8), (2, 30, 8), dv=5)
        folder = self.state("s", q, k, v)
        expected = self.merged(folder, folder)
        os.mkdir(self.path("t"))
        for n in "mlo":
            x = np.load(os.path.join(folder, n + ".npy"))
            np.save(self.path(f"t/{n}.npy"), np.asfortranarray(x).astype(">f8"))
        self.assertSameBits(self.merged(folder, self.path("t"))[0], expected[0])
        np.save(self.path("t/m.npy"), np.full((4, 6), -np.inf))
        np.save(self.path("t/o.npy"), np.full((4, 6, 5), np.nan))
        self.assertSameBits(self.merged(folder, self.path("t"))[0], self.merged(folder)[0])

    def test_a_signal_leaves_neither_files_nor_the_directory(self):
        q, k, v = self.inputs("f8", (4, 6000, 64), (4, 6000, 64))
        words = self.command(q, k, v, "--threads", "1", "--state-out", self.path("new/deep"), "-o", self.path("o.npy"))
        before = sorted(os.listdir(self.folder))
        process = subprocess.Popen([TOOL, *words], stderr=subprocess.PIPE)
        for _ in range(5000):  # until the directory and its temporary files are there
            if os.path.isdir(self.path("new/deep")) and len(os.listdir(self.path("new/deep"))) == 3:
                break
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGTERM)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_refusals(self):
        q, k, v = self.inputs("f4", (2, 3, 8), (2, 9, 8), dv=5)
        call = self.command(q, k, v)
        a = self.state("a", q, k, v)
        self.fails(1, "merge", self.path("no"), "-o", self.path("x.npy"), says=["no/m.npy", "no such file"])
        self.fails(1, *call, "--state-out", self.path("q.npy"), says="q.npy")
        self.fails(1, *call, "--state-out", self.path("q.npy/s"), says="q.npy")
        bad = self.save("bad.npy", np.ones((3, 3, 9)))
        self.fails(1, *call, "--mask", bad, "--state-out", self.path("t"), says="bad.npy")  # and no directory t
        os.mkdir(self.path("b"))
        for n in "mlo":
            np.save(self.path(f"b/{n}.npy"), np.load(os.path.join(a, n + ".npy")))
        def refused(name, array, says):
            keep = np.load(self.path(f"b/{name}.npy"))
            np.save(self.path(f"b/{name}.npy"), array)
            self.fails(1, "merge", a, self.path("b"), "-o", self.path("x.npy"), says=[f"b/{name}.npy", says])
            np.save(self.path(f"b/{name}.npy"), keep)
        refused("m", np.zeros((2, 3)), "float64")
        refused("l", np.zeros((2, 4), "f4"), "(2, 4)")
        refused("o", np.zeros((2, 3), "f4"), "(2, 3)")
        refused("o", np.zeros((2, 3, 6), "f4"), "(2, 3, 6)")
        refused("m", np.zeros((2, 3), "i4"), "int32")
        os.remove(self.path("b/l.npy"))
        self.fails(1, "merge", a, self.path("b"), "-o", self.path("x.npy"), says=["b/l.npy", "no such file"])


if __name__ == "__main__":
    main()
