# SPDX-License-Identifier: Apache-2.0
# Two outputs that lead to one file, however they are spelt, are refused: one of them would be lost.
import os
import subprocess

import numpy as np

from support import TOOL, Case, main


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
