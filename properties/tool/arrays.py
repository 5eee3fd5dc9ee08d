# SPDX-License-Identifier: Apache-2.0
# Files in and out: every type, order, byte order and version gives the same bits; a malformed file gives a sentence with its
# name; outputs appear whole or not at all.
import io
import os
import signal
import stat
import subprocess
import time

import numpy as np

from support import BF16, TOOL, TYPES, Case, cast, header, header_text, main, widen


def bytes_of(array):
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


class Reading(Case):
    def test_orders_and_byte_orders_give_the_same_bits(self):
        x = self.random.normal(size=(5, 7, 11)) * 100
        for kind in TYPES:
            a = cast(x, kind)
            expected = self.array("softmax" if kind not in ("i4", "i8") else "scan", self.save("c.npy", a),
                                  *([] if kind not in ("i4", "i8") else ["--with", "sum"]), "--axis", "1")
            variants = {"fortran": np.asfortranarray(a), "reversed axes": a.transpose(2, 0, 1).copy().transpose(1, 2, 0)}
            if kind != "bf16":
                variants["big-endian"] = a.astype(a.dtype.newbyteorder(">"))
                variants["big-endian fortran"] = np.asfortranarray(variants["big-endian"])
            for name, variant in variants.items():
                command = ["softmax"] if kind not in ("i4", "i8") else ["scan", "--with", "sum"]
                got = self.array(command[0], self.save("v.npy", variant), *command[1:], "--axis", "1")
                self.assertSameBits(got, expected, f"{kind} {name}")

    def test_versions_and_spellings(self):
        data = np.arange(6, dtype="<f4").tobytes()
        spellings = [
            header("'<f4'", "False", "(2, 3)"), header("'<f4'", "False", "(2, 3)", (2, 0)),
            header("'<f4'", "False", "(2, 3)", (3, 0)), header("'=f4'", "False", "(2, 3)"),
            header('"<f4"', "False", "(2, 3)"), header("'<f4'", "False", "(2L, 3L)"),
            header_text("{'shape':(2,3,),'descr':'<f4','fortran_order':False}"),
            header_text("  { 'fortran_order' : False ,\n 'shape' : ( 2 , 3 ) , 'descr' : '<f4' , }  "),
            b"\x93NUMPY\x01\x00\x39\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",  # no padding: misaligned
        ]
        spellings[-1] = spellings[-1][:8] + (len(spellings[-1]) - 10).to_bytes(2, "little") + spellings[-1][10:]
        for spelling in spellings:
            path = self.write("x.npy", spelling + data)
            self.assertEqual(self.ok("reduce", path, "--with", "sum", "--axis", "1"), "sum 3.0 12.0\n", spelling)
            self.assertEqual(self.ok("reduce", "-", "--with", "sum", "--axis", "1", stdin=spelling + data),
                             "sum 3.0 12.0\n", spelling)
            self.assertEqual(self.ok("reduce", self.write("x.npy", spelling + data + b"extra"), "--with", "max"),
                             "max 5.0\n")

    def test_rank_0_and_empty(self):
        self.assertEqual(self.ok("reduce", self.save("x.npy", np.float64(3.5)), "--with", "sum"), "sum 3.5\n")
        self.assertEqual(self.ok("reduce", self.save("x.npy", np.zeros((0, 3), "f4")), "--with", "sum", "--axis", "0"),
                         "sum 0.0 0.0 0.0\n")
        self.assertEqual(self.array("softmax", self.save("x.npy", np.zeros((3, 0), "f4"))).shape, (3, 0))
        self.assertEqual(self.array("scan", self.save("x.npy", np.zeros((0, 4), "i8")), "--with", "max").shape, (0, 4))

    def test_bool(self):
        x = self.write("x.npy", header("'|b1'", "False", "(4,)") + bytes([0, 1, 2, 255]))
        self.assertEqual(self.ok("reduce", x, "--with", "any,all,count"), "any true\nall false\ncount 4\n")
        self.fails(1, "reduce", x, "--with", "sum", says=["x.npy", "bool", "sum"])

    def test_pipes_are_read_like_files(self):
        x = self.random.normal(size=1000)
        os.mkfifo(self.path("pipe"))
        expected = self.ok("reduce", self.save("x.npy", x), "--with", "sum")
        child = os.fork()
        if child == 0:
            with open(self.path("pipe"), "wb") as f:
                f.write(bytes_of(x))
            os._exit(0)
        self.assertEqual(self.ok("reduce", self.path("pipe"), "--with", "sum"), expected)
        os.waitpid(child, 0)


class Malformed(Case):
    def test_an_axis_too_many(self):
        x = self.write("x.npy", header("'<f4'", "False", "(" + "1, " * 64 + ")") + np.float32(3).tobytes())
        self.assertEqual(self.ok("reduce", x, "--with", "sum,moments", "--axis", "5"), "sum 3.0\nmoments 1.0 3.0 0.0\n")
        for name in ["moments", "histogram:0,5,2"]:
            self.fails(1, "reduce", x, "--with", name, "--keepdims", says=["x.npy", name.split(":")[0], "64 axes", "(1, 1, 1, "])

    def test_headers(self):
        good = header("'<f4'", "False", "(2, 3)")
        data = np.arange(6, dtype="<f4").tobytes()
        cases = {
            "empty": (b"", "empty"),
            "text": (b"hello, this is not an array at all", "not a .npy file"),
            "half a magic": (b"\x93NUM", "not a .npy file"),
            "zip": (b"PK\x03\x04" + bytes(60), "not a .npy file"),
            "version 4": (b"\x93NUMPY\x04\x00" + good[8:] + data, "version 4.0"),
            "version 0": (b"\x93NUMPY\x00\x00" + good[8:] + data, "version 0.0"),
            "version 1.1": (b"\x93NUMPY\x01\x01" + good[8:] + data, "version 1.1"),
            "no length": (good[:9], ["ends inside its header", "9 bytes"]),
            "half a header": (good[:40], "ends inside its header"),
            "long header": (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + good[10:], "2147483647"),
            "truncated data": (good + data[:-1], ["24 bytes", "found 23", "(2, 3)"]),
            "no data": (good, ["24 bytes", "found 0"]),
            "not a dictionary": (header_text("['descr']") + data, "malformed"),
            "never closed": (header_text("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)") + data, "malformed"),
            "unquoted": (header_text("{descr: '<f4', 'fortran_order': False, 'shape': (2, 3)}") + data, "malformed"),
            "open string": (header_text("{'descr: <f4, ") + data, "malformed"),
            "text behind": (header_text("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x") + data, "malformed"),
            "no descr": (header_text("{'fortran_order': False, 'shape': (2, 3)}") + data, "'descr'"),
            "no order": (header_text("{'descr': '<f4', 'shape': (2, 3)}") + data, "'fortran_order'"),
            "no shape": (header_text("{'descr': '<f4', 'fortran_order': False}") + data, "'shape'"),
            "unknown key": (header_text("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'x': 1}"), "'x'"),
            "twice": (header_text("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}"), "twice"),
            "order 1": (header("'<f4'", "1", "(2, 3)") + data, "True or False"),
            "a list": (header("'<f4'", "False", "[2, 3]") + data, "malformed"),
            "no tuple": (header("'<f4'", "False", "(6)") + data, ["malformed", "(3,)"]),
            "leading zeros": (header("'<f4'", "False", "(006,)") + data, "malformed"),
            "bytes": (header("b'<f4'", "False", "(6,)") + data, "malformed"),
            "shape 6": (header("'<f4'", "False", "6") + data, "malformed"),
            "shape 2.5": (header("'<f4'", "False", "(2.5,)") + data, "malformed"),
            "negative": (header("'<f4'", "False", "(-1, 6)") + data, "negative"),
            "huge": (header("'<f4'", "False", "(1152921504606846976, 16)") + data, "address space"),
            "huge and empty": (header("'<f4'", "False", "(0, 4611686018427387904, 4)") + data, "address space"),
            "beyond 64 bits": (header("'<f4'", "False", "(99999999999999999999,)") + data, "64 bits"),
            "65 axes": (header("'<f4'", "False", "(" + "1, " * 65 + ")") + data, "64 axes"),
            "descr 3": (header("3", "False", "(2, 3)") + data, "malformed"),
        }
        for descr in ["<u4", "<c8", "|u1", "|i1", "<i2", "<u2", "<f16", "|S4", "<U3", "|O", "<M8[ns]", "|V4", "f", ""]:
            cases[f"type {descr}"] = (header(f"'{descr}'", "False", "(2, 3)") + data * 8, ["not supported", descr, "float32"])
        cases["structured"] = (header("[('a', '<f4')]", "False", "(6,)") + data, "type '[('a', '<f4')]' is not")
        for name, (content, says) in cases.items():
            with self.subTest(name):
                says = [says] if isinstance(says, str) else says
                path = self.write("bad.npy", content)
                self.fails(1, "reduce", path, "--with", "sum", "-o", self.path("r.npy"), says=["bad.npy", *says])
                self.fails(1, "reduce", "-", "--with", "sum", stdin=content, says=["standard input", *says])
                self.fails(1, "softmax", path, "-o", self.path("p.npy"), says=["bad.npy", *says])

    def test_files_that_are_not_there(self):
        self.fails(1, "reduce", self.path("no.npy"), "--with", "sum", says=["no.npy", "no such file"])
        self.fails(1, "reduce", self.folder, "--with", "sum", says="is a directory")
        self.fails(1, "softmax", self.path("no.npy"), "-o", self.path("p.npy"), says="no such file")


class Writing(Case):
    def test_as_numpy_writes(self):
        for kind in TYPES:
            x = cast(self.random.normal(size=(3, 4)) * 10, kind)
            self.array("scan", self.save("x.npy", x), "--with", "max", out="y.npy")
            with open(self.path("y.npy"), "rb") as f:
                data = f.read()
            self.assertEqual(data[:8], b"\x93NUMPY\x01\x00")
            self.assertEqual((10 + int.from_bytes(data[8:10], "little")) % 64, 0)
            expected = bytes_of(np.load(self.path("y.npy")))
            if kind == "bf16":
                expected = expected.replace(b"'|V2'", b"'<V2'")
            self.assertEqual(data, expected, kind)
            self.assertSameBits(widen(np.load(self.path("y.npy"))), np.maximum.accumulate(widen(x), axis=-1))

    def test_an_input_may_be_the_output(self):
        x = self.random.normal(size=(40, 50)).astype("f4")
        expected = self.array("softmax", self.save("x.npy", x))
        self.assertSameBits(self.array("softmax", self.path("x.npy"), out="x.npy"), expected)
        self.save("x.npy", x)
        self.assertEqual(self.array("reduce", self.path("x.npy"), "--with", "count", out="x.npy"), 2000)

    def test_links_modes_and_devices(self):
        x = self.save("x.npy", np.ones(3, "f4"))
        self.save("real.npy", np.zeros(1))
        os.chmod(self.path("real.npy"), 0o640)
        os.symlink("real.npy", self.path("link.npy"))
        self.array("softmax", x, out="link.npy")
        self.assertTrue(os.path.islink(self.path("link.npy")))
        self.assertEqual(np.load(self.path("real.npy")).shape, (3,))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("real.npy")).st_mode), 0o640)
        self.ok("softmax", x, "-o", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        if os.path.exists("/dev/full"):
            self.fails(1, "softmax", x, "-o", "/dev/full", says=["/dev/full", "no space"])

    def test_places_that_cannot_be_written(self):
        x = self.save("x.npy", np.ones(3, "f4"))
        self.fails(1, "softmax", x, "-o", self.path("no/p.npy"), says=["no/p.npy", "no such file or directory"])
        self.fails(1, "softmax", x, "-o", self.folder, says="is a directory")
        self.fails(1, "softmax", x, "-o", self.path("p.npy"), "--lse", self.path("no/l.npy"), says="no/l.npy")

    def test_a_signal_leaves_no_file(self):
        process = subprocess.Popen([TOOL, "reduce", "-", "--with", "sum", "--axis", "1", "-o", self.path("r.npy")],
                                   stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(bytes_of(np.zeros((3, 4)))[:-8])
        process.stdin.flush()
        for _ in range(500):  # until the temporary file is there
            if os.listdir(self.folder):
                break
            time.sleep(0.01)
        self.assertEqual(len(os.listdir(self.folder)), 1)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGTERM)
        self.assertEqual(os.listdir(self.folder), [])

    def test_bf16_is_the_void_type(self):
        x = self.save("x.npy", cast([[1, 2, 3]], "bf16"))
        self.assertEqual(self.array("softmax", x).dtype, BF16)


if __name__ == "__main__":
    main()
