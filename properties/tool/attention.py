# SPDX-License-Identifier: Apache-2.0
# regroup attention against NumPy in float64 within the bound computed from the input; masks, grouped heads, lengths,
# pages; hidden keys that hold NaN; the same bits for one query alone, in any batch, and on any pages.
import os

import numpy as np

from support import FLOATS, cast, main
from support.attention import AttentionCase, reference

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/data")


class Attention(AttentionCase):
    def test_types_ranks_and_heads(self):
        for kind in FLOATS:
            for q_shape, k_shape in [((5, 8), (9, 8)), ((3, 5, 8), (3, 9, 8)), ((2, 6, 7, 16), (2, 2, 70, 16)),
                                     ((1, 4, 1, 33), (1, 1, 130, 33)), ((2, 3, 40, 64), (2, 3, 1100, 64))]:
                for causal in [None, "bottom-right", "top-left"]:
                    with self.subTest(kind=kind, shape=q_shape, causal=causal):
                        q, k, v = self.inputs(kind, q_shape, k_shape, dv=5)
                        self.check(q, k, v, kind, causal=causal)
                        self.check(q, k, v, kind, causal=causal, scale=-0.3)

    def test_more_queries_than_keys(self):
        q, k, v = self.inputs("f4", (2, 9, 8), (2, 4, 8))
        o, lse = self.check(q, k, v, "f4", causal="bottom-right")
        self.assertTrue((o[:, :5] == 0).all() and (lse[:, :5] == -np.inf).all())
        self.check(q, k, v, "f4", causal="top-left")

    def test_masks(self):
        q, k, v = self.inputs("f4", (2, 4, 6, 8), (2, 2, 100, 8))
        for shape in [(100,), (6, 1), (6, 100), (4, 1, 100), (2, 1, 6, 100), (2, 4, 6, 100), (1, 1, 1, 1), ()]:
            seen = self.random.random(size=shape) < 0.6
            bias = self.random.normal(size=shape)
            bias = np.where(self.random.random(size=shape) < 0.3, -np.inf, bias)
            for causal in [None, "bottom-right", "top-left"]:
                self.check(q, k, v, "f4", mask=np.asarray(seen), causal=causal)
                for kind in FLOATS:
                    self.check(q, k, v, "f4", mask=cast(np.atleast_1d(bias), kind), causal=causal)
            self.check(q, k, v, "f4", mask=np.asfortranarray(seen))
        for shape in [(99,), (2, 6, 100), (1, 2, 4, 6, 100)]:
            self.fails(1, "attention", self.path("q.npy"), self.path("k.npy"), self.path("v.npy"), "-o", self.path("x.npy"),
                       "--mask", self.save("bad.npy", np.ones(shape, bool)), says=["bad.npy", str(shape).replace(",)", ",)")])
        self.fails(1, "attention", self.path("q.npy"), self.path("k.npy"), self.path("v.npy"), "-o", self.path("x.npy"),
                   "--mask", self.save("bad.npy", np.ones((6, 100), "i8")), says=["bad.npy", "int64"])

    def test_lengths(self):
        for integer in ["i4", "i8"]:
            q, k, v = self.inputs("f4", (3, 4, 6, 8), (3, 2, 100, 8))
            lengths = np.array([0, 37, 100], integer)
            for causal in [None, "bottom-right", "top-left"]:
                self.check(q, k, v, "f4", lengths=lengths, causal=causal)
                self.check(q, k, v, "f4", lengths=lengths, causal=causal, mask=self.random.random((6, 100)) < 0.5)
        q, k, v = self.inputs("f8", (4, 6, 8), (2, 100, 8))
        self.check(q, k, v, "f8", lengths=np.array([51]))
        q, k, v = self.inputs("f8", (6, 8), (100, 8))
        self.check(q, k, v, "f8", lengths=np.array([51]))
        for bad, says in [(np.array([101]), "101"), (np.array([-1]), "-1"), (np.array([1, 2]), "(2,)"), (np.array([1.0]), "float64"),
                          (np.array(1), "()")]:
            self.fails(1, "attention", self.path("q.npy"), self.path("k.npy"), self.path("v.npy"), "-o", self.path("x.npy"),
                       "--kv-lengths", self.save("n.npy", bad), says=["n.npy", says])

    def test_hidden_keys_do_not_matter(self):
        q, k, v = self.inputs("f4", (2, 4, 6, 8), (2, 2, 200, 8), size=1)
        seen = self.random.random((2, 1, 1, 200)) < 0.7
        expected = self.attend(q, k, v, mask=seen)
        for bad in [np.nan, np.inf, -np.inf]:
            k2, v2 = k.copy(), v.copy()
            k2[~np.broadcast_to(seen[:, :, 0, :], (2, 2, 200))] = bad
            v2[~np.broadcast_to(seen[:, :, 0, :], (2, 2, 200))] = bad
            for keys, values in [(k2, v), (k, v2), (k2, v2)]:
                got = self.attend(q, keys, values, mask=seen)
                self.assertSameBits(got[0], expected[0], bad)
                self.assertSameBits(got[1], expected[1], bad)
        expected = self.attend(q[:, :, :3], k[:, :, :50], v[:, :, :50])
        k2, v2 = k.copy(), v.copy()
        k2[:, :, 50:], v2[:, :, 50:] = np.nan, np.inf
        got = self.attend(q[:, :, :3], k2, v2, kv_lengths=np.array([50, 50]))
        self.assertSameBits(got[0], expected[0])
        self.assertSameBits(got[1], expected[1])

    def test_nan_stays_in_its_row(self):
        q, k, v = self.inputs("f4", (2, 6, 8), (2, 30, 8))
        clean, _ = self.attend(q, k, v, "--causal")
        q2, k2, v2 = q.copy(), k.copy(), v.copy()
        q2[0, 2, 3] = np.nan
        o, lse = self.attend(q2, k, v, "--causal")
        self.assertTrue(np.isnan(o[0, 2]).all() and np.isnan(lse[0, 2]))
        o[0, 2] = clean[0, 2]
        self.assertSameBits(o, clean)
        k2[1, 27] = np.nan  # seen by the queries from 3 on
        o, lse = self.attend(q, k2, v, "--causal")
        self.assertTrue(np.isnan(o[1, 3:]).all() and np.isnan(lse[1, 3:]).all())
        o[1, 3:] = clean[1, 3:]
        self.assertSameBits(o, clean)
        v2[1, 27, 4] = np.nan
        o, lse = self.attend(q, k, v2, "--causal")
        self.assertTrue(np.isnan(o[1, 3:, 4]).all())
        o[1, 3:, 4] = clean[1, 3:, 4]
        self.assertSameBits(o, clean)

    def test_pages(self):
        for kind, table_type in [("f4", "i4"), ("f2", "i4"), ("f8", "i4")]:
            b, hkv, size, pages, d = 3, 2, 16, 9, 8
            q, k, v = self.inputs(kind, (b, 4, 5, d), (b, hkv, size * pages, d), dv=6)
            lengths = np.array([0, 70, 144], "i4")
            for causal in [[], ["--causal"]]:
                expected = self.attend(q, k, v, *causal, kv_lengths=lengths)
                order = self.random.permutation(b * pages + 4)[:b * pages].reshape(b, pages)
                pools = []
                for x in (k, v):
                    pool = cast(np.full((b * pages + 4, hkv, size, x.shape[-1]), np.nan), kind)
                    for e in range(b):
                        for p in range(pages):
                            pool[order[e, p]] = x[e, :, p * size:(p + 1) * size]
                    pools.append(pool)
                table = order.astype(table_type)
                got = self.attend(q, *pools, *causal, page_table=table, kv_lengths=lengths)
                self.assertSameBits(got[0], expected[0])
                self.assertSameBits(got[1], expected[1])
                table[0, :], table[1, 5:] = -7, 2**30  # wholly past the lengths
                got = self.attend(q, *pools, *causal, page_table=table.copy(), kv_lengths=lengths)
                self.assertSameBits(got[0], expected[0])
                mask = self.random.random((5, size * pages)) < 0.5
                self.assertSameBits(self.attend(q, *pools, *causal, page_table=table, kv_lengths=lengths, mask=mask)[0],
                                    self.attend(q, k, v, *causal, kv_lengths=lengths, mask=mask)[0])
        full = order.astype("i4")
        self.assertSameBits(self.attend(q, *pools, page_table=full)[0], self.attend(q, k, v)[0])
        self.assertSameBits(self.attend(q[1], *pools, page_table=full[1:2])[0], self.attend(q[1], k[1], v[1])[0])
        self.attend(q, *pools, page_table=full)
        bad = full.copy()
        bad[1, 4] = b * pages + 4
        for table, says in [(bad, ["(1, 4)", str(b * pages + 4)]), (full[:2], "(2, 9)"), (full[0], "(9,)"), (full.astype("f4"), "float32")]:
            self.fails(1, "attention", self.path("q.npy"), self.path("k.npy"), self.path("v.npy"), "-o", self.path("x.npy"),
                       "--page-table", self.save("t.npy", table), says=["t.npy", *([says] if isinstance(says, str) else says)])

    def test_same_bits(self):
        q, k, v = self.inputs("f4", (2, 4, 40, 32), (2, 2, 2500, 32))
        o, lse = self.attend(q, k, v, "--causal")
        for threads in [1, 2, 3, 7]:
            got = self.attend(q, k, v, "--causal", "--threads", threads)
            self.assertSameBits(got[0], o)
            self.assertSameBits(got[1], lse)
        for i in [0, 17, 39]:  # alone, with the keys that it sees
            keys = 2500 - 40 + i + 1
            got = self.attend(q[:, :, i:i + 1].copy(), k[:, :, :keys].copy(), v[:, :, :keys].copy())
            self.assertSameBits(got[0], o[:, :, i:i + 1].copy())
        self.assertSameBits(self.attend(q[1, 2], k[1, 1], v[1, 1], "--causal")[0], o[1, 2])
        got = self.attend(*(np.asfortranarray(x) for x in (q, k, v)), "--causal")
        self.assertSameBits(got[0], o)
        got = self.attend(*(x.astype(">f4") for x in (q, k, v)), "--causal")
        self.assertSameBits(got[0], o)
        repeated = [np.repeat(x, 2, axis=1) for x in (k, v)]
        self.assertSameBits(self.attend(q, *repeated, "--causal")[0], o)
        for target in ["baseline", "x86-64-v3"]:
            done = self.run_tool("attention", self.path("q.npy"), self.path("k.npy"), self.path("v.npy"), "--causal", "-o",
                                 self.path("t.npy"), env={"REGROUP_TARGET": target})
            if done.returncode == 0:
                self.assertSameBits(np.load(self.path("t.npy")), self.attend(q, *repeated, "--causal")[0], target)

    def test_splits(self):
        q, k, v = self.inputs("f4", (2, 3, 10, 16), (2, 3, 300, 16))
        for split in [1, 2, 3, 7, 300, 1000, 10**18]:
            for causal in [None, "bottom-right"]:
                self.check(q, k, v, "f4", "--split", str(split), causal=causal)

    def test_no_keys_and_no_queries(self):
        q, k, v = self.inputs("f4", (2, 3, 8), (2, 0, 8), dv=5)
        o, lse = self.attend(q, k, v)
        self.assertTrue((o == 0).all() and (lse == -np.inf).all() and o.shape == (2, 3, 5))
        q, k, v = self.inputs("f4", (2, 0, 8), (2, 4, 8), dv=5)
        o, lse = self.attend(q, k, v)
        self.assertEqual((o.shape, lse.shape), ((2, 0, 5), (2, 0)))

    def test_misfits(self):
        good = {"q": (2, 4, 5, 8), "k": (2, 2, 9, 8), "v": (2, 2, 9, 6)}
        cases = [({"k": (2, 2, 9, 7)}, "8 and 7"), ({"v": (2, 2, 8, 6)}, "(2, 2, 8, 6)"), ({"k": (2, 3, 9, 8), "v": (2, 3, 9, 6)}, "multiple"),
                 ({"k": (3, 2, 9, 8), "v": (3, 2, 9, 6)}, "batch"), ({"q": (4, 5, 8)}, "rank"), ({"q": (8,)}, "(8,)"),
                 ({"q": (1, 2, 4, 5, 8)}, "(1, 2, 4, 5, 8)"), ({"v": (2, 9, 6)}, "(2, 9, 6)"), ({"v": (2, 1, 9, 6)}, "(2, 1, 9, 6)")]
        for changes, says in cases:
            files = [self.save(n + ".npy", np.zeros(changes.get(n, good[n]), "f4")) for n in "qkv"]
            self.fails(1, "attention", *files, "-o", self.path("o.npy"), says=[".npy", says])
        files = [self.save(n + ".npy", np.zeros(good[n], "f4" if n != "k" else "f8")) for n in "qkv"]
        self.fails(1, "attention", *files, "-o", self.path("o.npy"), says=["k.npy", "float64", "float32"])
        files = [self.save(n + ".npy", np.zeros(good[n], "i4")) for n in "qkv"]
        self.fails(1, "attention", *files, "-o", self.path("o.npy"), says=["q.npy", "int32"])

    def test_a_trained_transformer(self):
        folder = os.path.join(DATA, "minilm")
        if not os.path.exists(os.path.join(folder, "layer0_q.npy")):
            self.skipTest("the example data are not there")
        q, k, v = (np.load(os.path.join(folder, f"layer0_{n}.npy")) for n in "qkv")
        o, lse = self.check(q, k, v, "f4")
        self.check(q, k, v, "f4", causal="top-left")
        _, _, bound, lse_bound = reference(q, k, v, "f4")
        self.assertWithin(o, np.load(os.path.join(folder, "layer0_out.npy")), bound)
        self.assertWithin(lse, np.load(os.path.join(folder, "layer0_lse.npy")), lse_bound)


if __name__ == "__main__":
    main()
