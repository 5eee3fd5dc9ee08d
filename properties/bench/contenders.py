# SPDX-License-Identifier: Apache-2.0
"""What benchmarks compare, without a benchmark: numbers, references and their errors, peers and their memory."""

import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import bits  # noqa: E402
import peers  # noqa: E402
import processes  # noqa: E402
import references  # noqa: E402
import works  # noqa: E402
from works import Work  # noqa: E402


class Numbers(unittest.TestCase):
    def test_bfloat16_rounds_to_nearest_even(self):
        x = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -2.5, 3.3895314e38], np.float32)
        self.assertEqual(
            works.widened(works.narrowed(x, "bf16"), "bf16").tolist(),
            [1.0, 1.0, 1 + 2**-6, -2.5, float(np.float32(3.3895314e38))],
        )

    def test_errors(self):
        softmax, scan = Work.named("softmax/rows/fp32/1x2"), Work.named("scan/plus/fp32/2")
        self.assertAlmostEqual(references.error(softmax, np.array([1.1, 10]), np.array([1.0, 10])), 0.1)
        self.assertAlmostEqual(references.error(scan, np.array([1.1, 10]), np.array([1.0, 10])), 0.01)
        self.assertEqual(references.error(softmax, np.array([0.0, 1]), np.array([0.0, 1])), 0)
        self.assertEqual(references.error(softmax, np.array([np.nan, 1]), np.array([1.0, 1])), math.inf)
        self.assertEqual(references.error(softmax, np.array([1.0]), np.array([1.0, 1])), math.inf)

    def test_operators_that_fast_math_compiles(self):
        source = '#include "fast_math.hpp"\n#include "textbook.hpp"\n'
        flags = ["-std=c++20", "-Ofast", f"-I{ROOT / 'include'}", f"-I{ROOT / 'bench'}", "-fsyntax-only", "-x", "c++", "-"]
        compiled = subprocess.run(["g++", *flags], input=source, capture_output=True, text=True)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_bits_that_change(self):
        a = np.array([1, 2, np.nan, 4], np.float32)
        self.assertEqual(bits.changed(a, a, "fp32"), (0, 0))
        b = np.array([np.nextafter(np.float32(1), np.float32(2)), 2, np.nan, -4], np.float32)
        self.assertEqual(bits.changed(a, b, "fp32"), (0.5, 2 / 128))
        self.assertEqual(bits.changed([1.0], [1.0078125], "bf16"), (1.0, 1 / 16))


class References(unittest.TestCase):
    def test_folds_and_scans_left_to_right(self):
        random = np.random.default_rng(3)
        maps = random.random((64, 2), np.float32)
        a, b, each = 1.0, 0.0, []
        for x, y in maps.astype(np.float64):
            a, b = x * a, x * b + y
            each.append((a, b))
        np.testing.assert_allclose(
            references.reduced(Work.named("reduce/affine/fp32/64"), maps.reshape(-1)), [a, b], rtol=1e-14
        )
        np.testing.assert_allclose(
            references.scanned(Work.named("scan/affine/fp32/64"), maps.reshape(-1)), np.ravel(each), rtol=1e-14
        )
        costs = random.random((37, 4))
        best = np.array([[0, np.inf], [np.inf, 0]])
        for m in costs.reshape(-1, 2, 2):
            best = np.min(best[:, :, None] + m[None, :, :], axis=1)
        np.testing.assert_allclose(
            references.reduced(Work.named("reduce/min_plus/fp64/37"), costs), best.reshape(-1), rtol=1e-14
        )
        run = np.array([1, 1, 0, 1, 1, 1, 0, 0, 1], np.uint8)
        self.assertEqual(references.reduced(Work.named("reduce/longest_run/fp32/9"), run), [3])

    def test_rows(self):
        x = np.array([[0, math.log(3)], [1000, 1000]], np.float32)
        self.assertTrue(
            np.allclose(references.reference(Work.named("softmax/rows/fp32/2x2"), {"x": x}), [0.25, 0.75, 0.5, 0.5])
        )
        np.testing.assert_allclose(
            references.reference(Work.named("logsumexp/rows/fp32/2x2"), {"x": x}),
            [math.log(4), 1000 + math.log(2)],
            rtol=1e-7,
        )
        gradient = references.reference(
            Work.named("cross_entropy/rows/fp32/2x2"), {"x": x, "targets": np.array([0, 1])}
        )
        np.testing.assert_allclose(gradient, np.array([-0.75, 0.75, 0.5, -0.5]) / 2, rtol=1e-6)
        columns = references.reference(Work.named("softmax/strided/fp32/2x2"), {"x": x.T.copy()})
        np.testing.assert_allclose(columns.reshape(2, 2).T.reshape(-1), [0.25, 0.75, 0.5, 0.5], rtol=1e-6)

    def test_math_is_right_beyond_fp64(self):
        work = Work.named("math/exp/fp64/1K")
        given = references.inputs(work)
        expected = references.reference(work, given)
        self.assertLess(references.error(work, np.exp(given["x"]), expected), 4e-16)
        self.assertGreater(references.error(work, np.exp(given["x"]), expected), 1e-17)  # not NumPy's own rounding
        log = Work.named("math/log/fp32/1K")
        given = references.inputs(log)
        self.assertEqual(given["x"].dtype, np.float32)
        self.assertLess(references.error(log, np.log(given["x"].astype(float)), references.reference(log, given)), 1e-14)
        self.assertEqual((works.amount(work), works.limit(work, 1, {})), ((1024, "Gelements/s"), (None, None)))

    def test_attention(self):
        work = Work.named("attention/causal/fp32/h2_kv1_n3_d2")
        given = references.inputs(work)
        q, k, v = (given[n].astype(np.float64).reshape(h, 3, 2) for n, h in (("q", 2), ("k", 1), ("v", 1)))
        expected = []
        for h in range(2):
            for i in range(3):
                w = np.exp(k[0, : i + 1] @ q[h, i] / math.sqrt(2))
                expected.append((w / w.sum()) @ v[0, : i + 1])
        np.testing.assert_allclose(references.reference(work, given), np.ravel(expected), rtol=1e-12)
        self.assertEqual(references.sampled(work, np.arange(12)).tolist(), list(range(12)))


class Peers(unittest.TestCase):
    def test_numpy_in_its_own_process_agrees_with_the_references(self):
        for name in (
            "softmax/rows/fp32/5x70",
            "log_softmax/rows/fp64/3x9",
            "logsumexp/wide/fp32/4x100",
            "reduce/plus/fp32/1000",
            "reduce/argmax/fp32/500",
            "scan/plus/fp32/1K",
            "reduce_segments/plus/fp32/1K_of_10",
        ):
            work = Work.named(name)
            with tempfile.TemporaryDirectory() as folder:
                given = references.inputs(work)
                for key, array in given.items():
                    array.tofile(pathlib.Path(folder) / key)
                worker = processes.Worker("NumPy", 1, folder)
                worker.start()
                try:
                    self.assertIsNone(worker.cannot)
                    self.assertTrue(worker.ask(prepare=name, keep=True).get("ready"), name)
                    self.assertGreater(worker.ask(time=0.001)["seconds"], 0)
                    result = np.load(pathlib.Path(folder) / "result of NumPy.npy")
                    self.assertLess(references.error(work, result, references.reference(work, given)), 1e-4, name)
                    for lacking in ("attention/full/fp32/h1_n8_d8", "threads/plus/fp32/1K", "reduce/affine/fp32/1K"):
                        self.assertRegex(worker.ask(prepare=lacking)["cannot"], "^has no")
                finally:
                    worker.end()

    def test_each_says_its_package(self):
        for name, peer in peers.ALL.items():
            self.assertEqual(peer.name, name)
            self.assertTrue(peer.package)


class Memory(unittest.TestCase):
    def test_a_peak_that_is_gone_again_is_seen(self):
        held = np.ones(1 << 20)
        self.assertLess(peers.peak_of(lambda: held.sum()), 2 << 20)
        self.assertAlmostEqual(peers.peak_of(lambda: np.ones(4 << 20).sum()) / 2**25, 1, delta=0.1)


if __name__ == "__main__":
    unittest.main()
