# SPDX-License-Identifier: Apache-2.0
# The tool from outside: runs the program named by REGROUP_TOOL (or the first argument of a test script), and compares
# arrays bitwise or within a bound computed from the input. References are NumPy in float64 or long double.
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import unittest

import numpy as np

if len(sys.argv) > 1 and os.path.exists(sys.argv[1]):
    os.environ["REGROUP_TOOL"] = os.path.abspath(sys.argv.pop(1))
TOOL = os.environ.get("REGROUP_TOOL")
if not TOOL:
    sys.exit("set REGROUP_TOOL to the program, or give it as the first argument")

BF16 = np.dtype("V2")
FLOATS = ["f2", "bf16", "f4", "f8"]
TYPES = FLOATS + ["i4", "i8"]
SMALLEST = {"f2": 2.0**-24, "bf16": 2.0**-133, "f4": 2.0**-149, "f8": 2.0**-1074}
UNIT = {"f2": 2.0**-11, "bf16": 2.0**-8, "f4": 2.0**-24, "f8": 2.0**-53}


def accumulated(kind):
    """The unit roundoff of the type that sums of `kind` are computed in."""
    return UNIT["f8"] if kind in ("f8", "i4", "i8") else UNIT["f4"]


def to_bf16(x):
    bits = np.asarray(x, "<f4").view("<u4").astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    nan = np.isnan(np.asarray(x, "<f4"))
    return np.where(nan, (bits >> 16) | 0x40, rounded).astype("<u2").view(BF16)


def from_bf16(x):
    return (np.ascontiguousarray(x).view("<u2").astype("<u4") << 16).view("<f4")


def cast(x, kind):
    """`x` rounded to the type called `kind`, as it goes into a file."""
    with np.errstate(over="ignore"):
        return to_bf16(np.asarray(x, "f4")) if kind == "bf16" else np.asarray(x).astype(kind)


def widen(x):
    """The numbers in an array as a file holds them, bfloat16 too."""
    return from_bf16(x) if x.dtype == BF16 else x


def same_bits(a, b):
    """Equal type, shape and bits, but for NaNs, which are one."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "f":
        a, b = np.where(np.isnan(a), np.nan, a).astype(a.dtype), np.where(np.isnan(b), np.nan, b).astype(b.dtype)
    return a.tobytes() == b.tobytes()


def steps(n):
    """Combines on the longest path from an element to the result: 32 in a lane, 7 over the lanes, the tree of tiles."""
    tiles = max(1, -(-n // 4096))
    return min(n, 32 + 7 + int(np.ceil(np.log2(tiles))) + 1) + 1


def limited(kind, amount):
    """For a child that is to be started: the most that it may have."""
    return lambda: resource.setrlimit(kind, (amount, amount))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="regroup-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.random = np.random.default_rng(1)

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def run_tool(self, *words, stdin=None, env=None):
        return subprocess.run([TOOL, *map(str, words)], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, **(env or {})}, timeout=120,
                              **({} if stdin is not None else {"stdin": subprocess.DEVNULL}))

    def ok(self, *words, **more):
        done = self.run_tool(*words, **more)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr.decode()}")
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode()

    def array(self, *words, out="out.npy", option="-o", **more):
        """Runs the tool with an output file and returns the array in it."""
        self.ok(*words, option, self.path(out), **more)
        return np.load(self.path(out))

    def json(self, *words, **more):
        return json.loads(self.ok(*words, "--json", **more))

    def fails(self, status, *words, says=(), **more):
        """The exit status, one sentence (a second line may point to --help), and no new file."""
        before = sorted(os.listdir(self.folder))
        done = self.run_tool(*words, **more)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, status, f"{words}: {text}")
        self.assertEqual(done.stdout, b"", words)
        lines = text.splitlines()
        self.assertTrue(1 <= len(lines) <= 2, text)
        self.assertTrue(lines[0].startswith("regroup: "), text)
        if len(lines) == 2:
            self.assertIn("--help", lines[1])
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, lines[0])
        self.assertEqual(sorted(os.listdir(self.folder)), before, "a failed command left a file")

    def stream(self, data, *words):
        """Runs the tool with `data` on standard input, in pieces of random sizes."""
        dice = random.Random(len(data))
        process = subprocess.Popen([TOOL, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        at = 0
        while at < len(data):
            size = dice.choice([1, 7, 64, 1000, 4096, 65536, 1 << 20])
            process.stdin.write(data[at:at + size])
            process.stdin.flush()
            at += size
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err.decode())
        return out.decode()

    def assertSameBits(self, a, b, about=""):
        self.assertTrue(same_bits(a, b), f"{about}: {a!r} is not {b!r}")

    def assertWithin(self, value, reference, bound, about=""):
        """|value - reference| <= bound, elementwise; NaN and infinities must agree exactly."""
        value, reference = np.asarray(value, np.longdouble), np.asarray(reference, np.longdouble)
        self.assertEqual(value.shape, reference.shape, about)
        special = ~np.isfinite(reference)
        self.assertTrue(np.array_equal(value[special], reference[special], equal_nan=True), about)
        with np.errstate(invalid="ignore"):
            excess = np.abs(value - reference) - bound
        bad = ~special & ~(excess <= 0)
        self.assertFalse(bad.any(), f"{about}: {value[bad][:3]} against {reference[bad][:3]}")


def header(descr, fortran_order, shape, version=(1, 0)):
    """A header as NumPy writes it, for any text in place of the values."""
    return header_text(f"{{'descr': {descr}, 'fortran_order': {fortran_order}, 'shape': {shape}, }}", version)


def header_text(text, version=(1, 0)):
    data = text.encode("utf-8")
    width = 2 if version[0] == 1 else 4
    pad = -(8 + width + len(data) + 1) % 64
    data += b" " * pad + b"\n"
    return b"\x93NUMPY" + bytes(version) + len(data).to_bytes(width, "little") + data


def main():
    unittest.main()
