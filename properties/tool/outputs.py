# SPDX-License-Identifier: Apache-2.0
# Where outputs lead. An open descriptor is written into. Two outputs that lead to one file, however they are spelt, are
# refused, since one of them would be lost.
import io
import os
import subprocess

import numpy as np

from support import TOOL, Case, main


class OpenDescriptors(Case):
    """What leads to an open descriptor is written into, where it stands, whatever is behind it; never replaced."""

    def setUp(self):
        super().setUp()
        self.x = self.save("x.npy", np.arange(6, dtype="f4").reshape(2, 3))
        self.ok("softmax", self.x, "-o", self.path("p.npy"))
        with open(self.path("p.npy"), "rb") as f:
            self.answer = f.read()

    def run_shell(self, script, name):
        done = subprocess.run(["sh", "-c", script, TOOL, self.x, name], cwd=self.folder, capture_output=True)
        return done.returncode, done.stdout, done.stderr

    def test_a_file_behind_a_descriptor(self):
        os.symlink("/dev/stdout", self.path("link"))
        for name, to in [("/dev/stdout", ""), ("/dev/stderr", "2"), ("/dev/fd/1", ""), ("/proc/self/fd/7", "7"),
                         ("/proc/thread-self/fd/1", ""), ("link", ""), ("../../dev/stdout", "")]:
            if name.startswith(".."):
                name = os.path.relpath("/dev/stdout", os.path.realpath(self.folder))
            self.write("log", b"precious\n")
            inode = os.stat(self.path("log")).st_ino
            self.assertEqual(self.run_shell(f'"$0" softmax "$1" -o "$2" {to}>> log', name), (0, b"", b""), name)
            with open(self.path("log"), "rb") as f:
                self.assertEqual(f.read(), b"precious\n" + self.answer, name)
            self.assertEqual(os.stat(self.path("log")).st_ino, inode)
        self.assertTrue(os.path.islink(self.path("link")))
        self.run_shell('exec > log; echo a; "$0" softmax "$1" -o "$2"; echo b', "/dev/stdout")
        with open(self.path("log"), "rb") as f:
            self.assertEqual(f.read(), b"a\n" + self.answer + b"b\n")

    def test_json_has_standard_output_for_itself(self):
        for option in [["-o", "/dev/stdout"], ["-o", self.path("q.npy"), "--lse", "/dev/fd/1"]]:
            self.fails(2, "softmax", self.x, "--axis", "0", *option, "--json", says=["standard output", "--json"])

    def test_a_new_file_has_no_others_rights(self):
        self.write("p.npy", b"before")
        os.chmod(self.path("p.npy"), 0o6751)
        self.ok("softmax", self.x, "-o", self.path("p.npy"))
        self.assertEqual(os.stat(self.path("p.npy")).st_mode & 0o7777, 0o751)

    def test_a_stream_that_claims_more_than_the_disk_has(self):
        free = os.statvfs(self.folder)
        stream = io.BytesIO()
        count = free.f_frsize * free.f_blocks // 2  # floats
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (count,)})
        read, write = os.pipe()
        self.write("p.npy", b"before")
        tool = subprocess.Popen([TOOL, "softmax", "-", "-o", self.path("p.npy")], stdin=read, stderr=subprocess.PIPE)
        os.close(read)
        os.write(write, stream.getvalue())  # and no elements: it is refused by its header
        self.assertIn(b"no space left", tool.communicate(timeout=60)[1])
        os.close(write)
        self.assertEqual(tool.returncode, 1)
        with open(self.path("p.npy"), "rb") as f:
            self.assertEqual(f.read(), b"before")

    def test_several_results_need_files(self):
        for name in ["/dev/stdout", "/dev/null"]:
            for monoids in ["sum,max", "top_k:2"]:
                done = subprocess.run([TOOL, "reduce", self.x, "--axis", "-1", "--with", monoids, "-o", name],
                                      cwd=self.folder, capture_output=True)
                self.assertNotEqual(done.returncode, 0, (name, monoids))
                self.assertIn(b"several results need files of their own", done.stderr)
                self.assertEqual(done.stdout, b"")
                self.assertFalse([f for f in os.listdir("/dev") if f.endswith(".npy")])

    def test_a_file_that_has_lost_its_name(self):
        script = 'exec 3> log; exec 4< log; rm log; "$0" softmax "$1" -o "$2" >&3 && cat <&4'
        self.assertEqual(self.run_shell(script, "/dev/fd/3"), (0, self.answer, b""))
        self.assertNotIn("log", " ".join(os.listdir(self.folder)))

    def test_two_descriptors_and_one_beside_a_name(self):
        self.ok("softmax", self.x, "--axis", "0", "-o", self.path("p.npy"), "--lse", self.path("l.npy"))
        script = 'exec > log; "$0" softmax "$1" --axis 0 -o /dev/stdout --lse "$2"'
        self.assertEqual(self.run_shell(script, "/dev/fd/1")[0], 0)
        with open(self.path("p.npy"), "rb") as p, open(self.path("l.npy"), "rb") as l, open(self.path("log"), "rb") as f:
            self.assertEqual(f.read(), p.read() + l.read())
        status, _, told = self.run_shell(script, "log")
        self.assertEqual(status, 2)
        self.assertIn(b"lead to one file", told)

    def test_descriptors_that_are_not_for_writing(self):
        for script in ['"$0" softmax "$1" -o "$2" 7< x.npy', '"$0" softmax x.npy -o p.npy --lse "$2" 7< x.npy']:
            before = sorted(os.listdir(self.folder))
            status, _, told = self.run_shell(script, "/dev/fd/7")
            self.assertEqual(status, 1)
            self.assertIn(b"/dev/fd/7: cannot be written: descriptor 7 is not open for writing", told)
            self.assertEqual(sorted(os.listdir(self.folder)), before)


class OneFile(Case):
    def setUp(self):
        super().setUp()
        self.x = self.save("x.npy", np.arange(6, dtype="f4").reshape(2, 3))

    def both(self, output, lse):
        return ["softmax", self.x, "-o", output, "--lse", lse]

    def test_names_that_lead_to_one_place(self):
        os.mkdir(self.path("d"))
        os.symlink("d", self.path("e"))
        os.symlink("o.npy", self.path("nothing.npy"))
        self.save("old.npy", np.zeros(3))
        os.symlink("old.npy", self.path("link.npy"))
        os.symlink(self.path("link.npy"), self.path("link2.npy"))
        here = self.folder
        for a, b in [("o.npy", "./o.npy"), ("o.npy", f"{here}/o.npy"), (f"{here}/d/../o.npy", "o.npy"), ("d/o.npy", "e/o.npy"),
                     ("e/../o.npy", "o.npy"), ("old.npy", "link.npy"), ("link2.npy", f"{here}/link.npy")]:
            before = sorted(os.listdir(here))
            done = subprocess.run([TOOL, *self.both(a, b)], cwd=here, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, (a, b))
            self.assertRegex(done.stderr.splitlines()[0], "two outputs.*(same name|lead to one file)")
            self.assertEqual(sorted(os.listdir(here)), before)
        self.assertSameBits(np.load(self.path("old.npy")), np.zeros(3))
        q = self.x
        self.fails(2, "attention", q, q, q, "--state-out", self.path("e"), "-o", self.path("d/o.npy"), says="one file")
        self.fails(2, "merge", self.path("d"), "-o", self.path("link.npy"), "--lse", self.path("old.npy"), says="one file")

    def test_links_among_the_outputs_of_reduce(self):
        self.save("r.sum.npy", np.zeros(3))
        os.symlink("r.sum.npy", self.path("r.max.npy"))
        self.fails(1, "reduce", self.x, "--with", "sum,max", "-o", self.path("r.npy"), says=["r.max.npy", "r.sum.npy", "same file"])
        self.assertSameBits(np.load(self.path("r.sum.npy")), np.zeros(3))

    def test_names_that_do_not(self):
        """A hard link is a second name, and each name gets its own file; a link to nothing is replaced."""
        self.save("a.npy", np.zeros(3))
        os.link(self.path("a.npy"), self.path("b.npy"))
        os.symlink("a.npy.gone", self.path("c.npy"))
        for a, b in [("a.npy", "b.npy"), ("c.npy", "a.npy.gone")]:
            self.ok(*self.both(self.path(a), self.path(b)))
            self.assertEqual((np.load(self.path(a)).shape, np.load(self.path(b)).shape), ((2, 3), (2,)))

    def test_devices_take_several(self):
        self.ok(*self.both("/dev/null", "/dev/null"))
        self.ok(*self.both("/dev/null", "/dev/../dev/null"))
        self.ok("reduce", self.x, "--with", "sum", "-o", "/dev/null")

    def test_an_input_may_be_an_output(self):
        x = np.load(self.x)
        other = self.array("softmax", self.x)
        os.symlink("x.npy", self.path("link.npy"))
        self.ok("softmax", self.x, "-o", self.path("link.npy"))
        self.assertTrue(os.path.islink(self.path("link.npy")))
        self.assertSameBits(np.load(self.x), other)
        self.assertEqual(x.shape, other.shape)


if __name__ == "__main__":
    main()
