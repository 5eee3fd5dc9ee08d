# SPDX-License-Identifier: Apache-2.0
# Failures outside the program: absurd sizes, full disks, closed pipes and descriptors, missing permissions, little memory. The
# law: a sentence and a status, outputs whole or not at all, nothing else left.
import os
import resource
import stat
import subprocess
import threading
import time

import numpy as np

from support import TOOL, Case, cast, header, limited, main

MIB = 1 << 20
NOBODY = 65534


class Robust(Case):
    def refused(self, *words, says=(), status=1, **popen):
        """As `fails`, for a child that is started in a special way."""
        before = sorted(os.listdir(self.folder))
        done = subprocess.run([TOOL, *map(str, words)], stderr=subprocess.PIPE, timeout=120,
                              **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **popen})
        text = done.stderr.decode()
        self.assertEqual(done.returncode, status, f"{words}: {text}")
        self.assertEqual(len(text.splitlines()), 1, text)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, text)
        self.assertEqual(sorted(os.listdir(self.folder)), before, "a failed command left a file")


class AbsurdSizes(Robust):
    def absurd(self, name, descr, shape):
        return self.write(name, header(f"'{descr}'", "False", shape))

    def test_outputs_beyond_an_address_space(self):
        q, k = self.absurd("q.npy", "<f4", (1 << 60, 0)), self.absurd("k.npy", "<f4", (0, 0))
        v = self.absurd("v.npy", "<f4", (0, 1 << 60))
        out = self.path("o.npy")
        self.fails(1, "attention", q, k, v, "-o", out, says=["o.npy", "address space", "1152921504606846976"])
        self.fails(1, "attention", q, k, v, "--state-out", self.path("s"), says="address space")
        b = self.absurd("b.npy", "|b1", (1 << 61, 0))
        self.fails(1, "reduce", b, "--with", "count", "--axis", 1, says=["the result", "int64", "address space"])
        self.fails(1, "reduce", b, "--with", "count", "--axis", 1, "-o", out, says=["o.npy", "int64", "address space"])
        wide = self.absurd("w.npy", "|b1", (0, 1 << 62))  # what is written could not be read again
        self.fails(1, "scan", wide, "--with", "count", "-o", out, says=["o.npy", "address space"])
        half = self.absurd("h.npy", "<f2", (1 << 61, 0))
        self.fails(1, "softmax", half, "-o", out, "--lse", self.path("l.npy"), says=["l.npy", "float32", "address space"])
        f = self.absurd("f.npy", "<f4", (1 << 40, 0))
        self.fails(1, "reduce", f, "--with", "histogram:0,1,1000000000", "--axis", 1, "-o", out, says="address space")

    def test_rows_of_nothing_cost_nothing(self):
        many, none = self.absurd("many.npy", "<f4", (1 << 60, 0)), self.absurd("none.npy", "<f4", (5, 0))
        for words in [("softmax", many), ("scan", many, "--with", "sum"), ("scan", many, "--with", "any"),
                      ("attention", many, none, none), ("attention", many, none, none, "--split", "3")]:
            self.ok(*words, "-o", self.path("o.npy"))
            with open(self.path("o.npy"), "rb") as f:
                self.assertIn(b"(1152921504606846976, 0)", f.read())
            os.unlink(self.path("o.npy"))

        lists = self.absurd("lists.npy", "<f4", (1 << 50, 0, 3))
        self.assertEqual(self.ok("reduce", lists, "--with", "sum", "--axis", "2"), "sum\n")
        self.fails(1, "reduce", lists, "--with", "sum", "--axis", "2", "--json", says=["1125899906842624", "-o"])

    def test_pages_of_a_pool_without_any_cost_nothing(self):
        q, table, none = self.save("q.npy", np.ones((2, 3, 4), "f4")), np.zeros((1, 1), "i4"), np.zeros(1, "i4")
        words = ["attention", q, *[self.absurd(name, "<f4", (0, 2, 1 << 55, 4)) for name in "kv"],
                 "--page-table", self.save("t.npy", table)]
        bias = self.save("m.npy", np.ones((3, 1)))
        for more in [[], ["--causal"], ["--split", 3], ["--state-out", self.path("s")], ["--mask", bias]]:
            o = self.array(*words, "--kv-lengths", self.save("n.npy", none), *more)
            self.assertSameBits(o, np.zeros((2, 3, 4), "f4"))
        says = ["page 0, but", "k with shape (0, 2, 36028797018963968, 4) has no pages"]
        self.fails(1, *words, "-o", self.path("o.npy"), says=says)
        words[2:4] = [self.absurd(name, "<f4", (0, 2, 7, 4)) for name in "kv"]
        mask = self.save("m.npy", np.ones((3, 7), "?"))
        self.assertSameBits(self.array(*words, "--kv-lengths", self.path("n.npy"), "--mask", mask), np.zeros((2, 3, 4), "f4"))

    def test_outputs_beyond_the_disk_and_the_memory(self):
        rows = self.absurd("r.npy", "<f4", (1 << 55, 0))
        self.fails(1, "reduce", rows, "--with", "sum", "--axis", 1, "-o", self.path("o.npy"),
                   says=["o.npy", "cannot be written", str(1 << 57)[:4]])
        self.fails(1, "reduce", rows, "--with", "sum", "--axis", 1,
                   says=["the result", "not enough memory for the 144115188075855872 bytes", "(36028797018963968,) of float32", "-o"])

    def test_streams_that_claim_more_than_they_have(self):
        for shape in ["(1152921504606846976,)", "(4, 288230376151711744)", "(288230376151711744, 4)"]:
            for axis in [(), ("--axis", -1), ("--axis", 0)]:
                if axis and shape.startswith("(28") and axis[1] == -1:
                    continue  # a result of 2^58 rows: above
                data = header("'<f4'", "False", shape) + bytes(400)
                self.fails(1, "reduce", "-", "--with", "sum", *axis, stdin=data,
                           says=["standard input", "4611686018427387904", "400"])


class Disks(Robust):
    def test_a_full_disk(self):
        x = self.save("x.npy", np.ones((500, 1000), "f4"))
        full = {"preexec_fn": limited(resource.RLIMIT_FSIZE, MIB)}
        out, lse = self.path("p.npy"), self.path("l.npy")
        self.refused("softmax", x, "-o", out, **full, says=["p.npy", "cannot be written", "2000128"])
        self.refused("softmax", x, "-o", lse, "--lse", out, "--axis", 0, **full, says="cannot be written")
        self.refused("scan", x, "--with", "sum", "-o", x, **full, says="cannot be written")
        self.assertSameBits(np.load(x), np.ones((500, 1000), "f4"))
        self.refused("attention", x, x, x, "--state-out", self.path("a/b"), "-o", out, **full, says="cannot be written")

    def test_a_full_temporary_directory(self):
        data = header("'<f4'", "True", "(500, 1000)") + bytes(2000000)
        with open(self.write("x", data), "rb") as source:
            self.refused("reduce", "-", "--with", "sum", stdin=source, env={**os.environ, "TMPDIR": self.folder},
                         preexec_fn=limited(resource.RLIMIT_FSIZE, MIB), says=["temporary file", self.folder, "written"])
        for folder, says in [("no", "no such file"), ("x", "not a directory")]:
            self.fails(1, "softmax", "-", "-o", self.path("p.npy"), stdin=data, env={"TMPDIR": self.path(folder)},
                       says=[self.path(folder), "temporary file", says])

    def test_devices_that_are_full(self):
        x = self.save("x.npy", np.ones((5, 6), "f4"))
        self.fails(1, "softmax", x, "-o", self.path("p.npy"), "--lse", "/dev/full", says=["/dev/full", "no space"])

    def test_a_file_that_is_shortened_while_it_is_in_use(self):
        q, k, v = (self.save(f"{name}.npy", np.zeros((1, 40_000, 16), "f4")) for name in "qkv")
        tool = subprocess.Popen([TOOL, "attention", q, k, "-", "-o", self.path("o.npy")], stdin=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        with open(v, "rb") as f:
            values = f.read()
        tool.stdin.write(values[:-1])
        tool.stdin.flush()  # the others are mapped by the time that most of these are read
        os.truncate(k, 4096)
        tool.stdin.write(values[-1:])
        told = tool.communicate(timeout=60)[1]
        self.assertEqual((tool.returncode, told),
                         (1, f"regroup: {k}: was shortened, or its disk failed, while it was in use\n".encode()))
        self.assertFalse(os.path.exists(self.path("o.npy")))


class Pipes(Robust):
    def test_standard_output_that_nobody_reads(self):
        x = self.save("x.npy", np.ones((1000, 1000), "f4"))
        for words in [("reduce", x, "--with", "sum"), ("reduce", x, "--with", "sum", "--axis", 1, "--json"),
                      ("reduce", x, "--with", "moments", "--axis", 1),
                      ("--help",), ("info",), ("laws", "sum", "--cases", 5)]:
            ours, theirs = os.pipe()
            os.close(ours)
            try:
                self.refused(*words, stdout=theirs, says="standard output cannot be written: broken pipe")
            finally:
                os.close(theirs)

    def test_an_output_pipe_whose_reader_leaves(self):
        x = self.save("x.npy", np.ones((500, 1000), "f4"))
        pipe = self.path("pipe")
        os.mkfifo(pipe)

        def read_a_little():
            with open(pipe, "rb", buffering=0) as f:
                f.read(100)
        reader = threading.Thread(target=read_a_little)
        reader.start()
        self.refused("softmax", x, "-o", pipe, "--lse", self.path("l.npy"), says=[pipe, "broken pipe"])
        reader.join()
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))

    def test_descriptors_that_do_not_wait(self):
        x = self.save("x.npy", np.ones((500, 1000), "f4"))
        with open(x, "rb") as f:
            data = f.read()
        self.ok("softmax", x, "-o", self.path("p.npy"))
        (theirs, ours), (answer, out) = os.pipe(), os.pipe()
        os.set_blocking(theirs, False)
        os.set_blocking(out, False)
        process = subprocess.Popen([TOOL, "softmax", "-", "-o", "/dev/stdout"], stdin=theirs, stdout=out)
        os.close(theirs)
        os.close(out)
        with open(ours, "wb", buffering=0) as f:
            for end in (3, 100, 70000, len(data)):
                time.sleep(0.1)
                data = data[f.write(data[:end]):]
            while data:
                data = data[f.write(data):]
        time.sleep(0.2)
        with open(answer, "rb") as f, open(self.path("p.npy"), "rb") as expected:
            self.assertEqual(f.read(), expected.read())
        self.assertEqual(process.wait(), 0)

    def test_text_for_a_descriptor_that_does_not_wait(self):
        x = self.save("x.npy", np.ones((50000, 2), "f4"))
        ours, theirs = os.pipe()
        os.set_blocking(theirs, False)
        process = subprocess.Popen([TOOL, "reduce", x, "--with", "sum", "--axis", "1"], stdout=theirs)
        os.close(theirs)
        time.sleep(0.3)
        with open(ours, "rb") as f:
            self.assertEqual(f.read(), b"sum" + b" 2.0" * 50000 + b"\n")
        self.assertEqual(process.wait(), 0)

    def test_standard_descriptors_that_are_closed(self):
        x = self.save("x.npy", np.arange(12.0).reshape(3, 4))
        expected = self.array("softmax", x)
        os.unlink(self.path("out.npy"))
        for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]:
            done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {closed}', TOOL, "softmax", x, "-o", self.path("p.npy")],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (0, b""), closed)
            self.assertSameBits(np.load(self.path("p.npy")), expected)
            os.unlink(self.path("p.npy"))
        size = os.path.getsize(x)
        for words in [("softmax", x, "-o", self.path("p.npy"), "--json"), ("reduce", x, "--with", "sum")]:
            done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', TOOL, *words], stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"standard output cannot be written", done.stderr)
        self.assertEqual(os.path.getsize(self.path("p.npy")), size)  # nothing was printed into it
        done = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&-', TOOL, "reduce", "-", "--with", "sum"],
                              stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard input: cannot be read", done.stderr)


class Permissions(Robust):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.as_nobody = {}
        if os.getuid() == 0:
            self.as_nobody = {"preexec_fn": lambda: os.setresuid(NOBODY, NOBODY, NOBODY)}
            try:
                subprocess.run([TOOL, "--version"], stdout=subprocess.DEVNULL, check=True, **self.as_nobody)
            except (OSError, subprocess.SubprocessError):
                self.skipTest("the program cannot be run by an unprivileged user here")

    def test_what_may_not_be_read(self):
        x = self.save("x.npy", np.ones(3))
        os.chmod(x, 0)
        self.refused("reduce", x, "--with", "sum", **self.as_nobody, says=["x.npy", "permission denied"])

    def test_where_nothing_may_be_written(self):
        x = self.save("x.npy", np.ones(3))
        os.mkdir(self.path("d"))
        os.chmod(self.path("d"), 0o555)
        self.refused("softmax", x, "-o", self.path("d/p.npy"), **self.as_nobody, says=["d/p.npy", "permission denied"])
        y = self.save("y.npy", np.ones((2, 3)))
        self.refused("attention", y, y, y, "--state-out", self.path("d/s"), **self.as_nobody,
                     says=["d/s", "permission denied"])
        ours, theirs = os.pipe()
        with open(x, "rb") as f:
            os.write(theirs, f.read())
        os.close(theirs)
        self.refused("reduce", "-", "--with", "softmax_mean,sum", stdin=ours, env={"TMPDIR": self.path("d")}, **self.as_nobody,
                     says=["d", "temporary file", "permission denied"])
        os.close(ours)


class Memory(Robust):
    def peak(self, *words, data=None, **popen):
        """The most memory that a run had at once, in bytes; `data` is what to write to it, in pieces."""
        process = subprocess.Popen([TOOL, *map(str, words), "--threads", "2"], stdout=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL if data is None else subprocess.PIPE, **popen)
        for piece in data or ():
            process.stdin.write(piece)
        if data is not None:
            process.stdin.close()
        self.answer = process.stdout.read().decode()
        process.stdout.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return used.ru_maxrss * 1024

    def test_a_stream_needs_a_block(self):
        small = self.save("small.npy", np.ones(10, "f4"))
        least = self.peak("reduce", small, "--with", "sum,moments,max,argmin")
        piece = np.ones(MIB // 4, "f4").tobytes()
        for shape, axis in [((1 << 26,), ()), ((3, 1 << 24), ("--axis", 1)), ((1 << 12, 1 << 14), ("--axis", 1)),
                            ((1 << 10, 1 << 8, 1 << 8), ("--axis", "1,2"))]:
            size = 4 * int(np.prod(shape))
            data = [header("'<f4'", "False", shape), *[piece] * (size // MIB)]
            used = self.peak("reduce", "-", "--with", "sum,moments,max,argmin", *axis, data=data)
            self.assertTrue(self.answer.startswith(f"sum {float(shape[-1]) if len(shape) < 3 else 65536.0}"), self.answer[:80])
            self.assertLess(used, least + 24 * MIB, shape)

    def test_a_stream_into_an_output(self):
        """256 MiB in C order: no temporary file, no memory but the output's own pages, and of rows not even those."""
        piece = np.ones(MIB // 4, "f4").tobytes()
        few = {"env": {**os.environ, "TMPDIR": self.path("none")}, "preexec_fn": limited(resource.RLIMIT_DATA, 96 * MIB)}
        out = self.path("o.npy")
        small = self.save("small.npy", np.ones((2, 5), "f4"))
        least = self.peak("softmax", small, "-o", out)
        for words, shape, rows in [(["softmax"], (1 << 12, 1 << 14), True), (["softmax"], (1 << 26,), False),
                                   (["softmax", "--axis", 0], (1 << 12, 1 << 14), False),
                                   (["scan", "--with", "sum"], (1 << 26,), False), (["scan", "--with", "any"], (1 << 12, 1 << 14), False),
                                   (["reduce", "--with", "softmax_mean"], (1 << 22, 16), True),
                                   (["reduce", "--with", "softmax_mean"], (1 << 15, 1 << 7, 16), True)]:
            size = 4 * int(np.prod(shape))
            data = [header("'<f4'", "False", shape), *[piece] * (size // MIB)]
            used = self.peak(words[0], "-", *words[1:], "-o", out, data=data, **few)
            if rows:
                self.assertLess(used, least + 24 * MIB, words)
            os.unlink(out)

    def test_attention_has_no_matrix_of_scores(self):
        n, keys, d = 2048, 32768, 16  # the matrix would be 256 MiB
        q = self.save("q.npy", cast(self.random.normal(size=(n, d)), "f4"))
        k = self.save("k.npy", cast(self.random.normal(size=(keys, d)), "f4"))
        least = self.peak("attention", q, q, q, "-o", self.path("o.npy"))
        used = self.peak("attention", q, k, k, "--causal", "-o", self.path("o.npy"))
        self.assertLess(used, least + 2 * 4 * keys * d + 16 * MIB)

    def test_merge_holds_two_states(self):
        n, dv = 4096, 512
        os.mkdir(self.path("s"))
        for name, shape in [("m", (n,)), ("l", (n,)), ("o", (n, dv))]:
            self.save(f"s/{name}.npy", np.ones(shape, "f4"))
        two = self.peak("merge", *[self.path("s")] * 2, "-o", self.path("o.npy"))
        many = self.peak("merge", *[self.path("s")] * 24, "-o", self.path("o.npy"))
        self.assertLess(many, two + 4 * n * dv + 4 * MIB)

    def test_little_memory_is_a_sentence(self):
        x = self.write("x.npy", header("'<f4'", "False", (300, MIB)))
        os.truncate(x, os.path.getsize(x) + 4 * 300 * MIB)  # no block of the disk
        self.refused("reduce", x, "--with", "sum", preexec_fn=limited(resource.RLIMIT_AS, 200 * MIB), says=["x.npy", "memory"])
        y = self.write("y.npy", header("'>f4'", "False", (80, MIB)))  # in the other byte order
        os.truncate(y, os.path.getsize(y) + 4 * 80 * MIB)
        self.refused("reduce", y, "--with", "sum", preexec_fn=limited(resource.RLIMIT_AS, 400 * MIB),
                     says=["y.npy", "not enough memory for a copy of its 335544320 bytes"])


if __name__ == "__main__":
    main()
