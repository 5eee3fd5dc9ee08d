# SPDX-License-Identifier: Apache-2.0
# Endings before the work is done: signals at any time, threads that cannot be started. The law: outputs whole or not at all,
# nothing else left, and a sentence if the program can still write one.
import os
import resource
import signal
import subprocess
import time

import numpy as np

from support import TOOL, Case, header, limited, main

MIB = 1 << 20


class Signals(Case):
    def test_at_any_time(self):
        """Two outputs are both there, whole, or neither; and nothing beside them."""
        x = self.save("x.npy", np.ones((4000, 2000), "f4"))
        seen = set()
        for i in range(16):
            number = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)[i % 4]
            process = subprocess.Popen([TOOL, "softmax", x, "-o", self.path("p.npy"), "--lse", self.path("l.npy")],
                                       stderr=subprocess.DEVNULL, preexec_fn=limited(resource.RLIMIT_CORE, 0))
            time.sleep(i * 0.012)
            process.send_signal(number)
            process.wait()
            left = sorted(set(os.listdir(self.folder)) - {"x.npy"})
            self.assertIn(process.returncode, (0, -number))
            self.assertIn(left, ([], ["l.npy", "p.npy"]))
            seen.add(process.returncode)
            if left:
                self.assertEqual(np.load(self.path("p.npy")).shape, (4000, 2000))
            else:
                self.assertEqual(process.returncode, -number)
            for name in left:
                os.unlink(self.path(name))
        self.assertNotEqual(seen, {0}, "no signal came in time; the array is too small for this machine")

    def held(self, *words, **popen):
        """A run that waits for the end of its standard input, once its outputs are begun."""
        process = subprocess.Popen([TOOL, *map(str, words)], stdin=subprocess.PIPE, cwd=self.folder, **popen)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        process.stdin.write(header("'<f4'", "False", "(4000,)") + bytes(400))
        process.stdin.flush()
        for _ in range(3000):
            if any(name.startswith(".") for _, _, names in os.walk(self.folder) for name in names):
                return process
            time.sleep(0.01)
        self.fail("no output was begun")

    def test_every_signal_that_ends_a_program(self):
        for name in ["INT", "TERM", "HUP", "QUIT", "XCPU", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "PWR"]:
            number = getattr(signal, "SIG" + name)
            process = self.held("softmax", "-", "-o", "p.npy", preexec_fn=limited(resource.RLIMIT_CORE, 0))
            process.send_signal(number)
            self.assertEqual((process.wait(), os.listdir(self.folder)), (-number, []), name)

    def test_many_directories_are_removed_too(self):
        x = self.save("x.npy", np.ones((2, 3), "f4"))
        os.mkfifo(self.path("pipe"))  # whose reader the program waits for, everything else done
        deep = "/".join(["d"] * 80)
        process = subprocess.Popen([TOOL, "attention", x, x, x, "--state-out", deep, "-o", "pipe"], cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        state = self.path(deep)
        for _ in range(3000):
            if os.path.isdir(state) and len(os.listdir(state)) == 3:
                break
            time.sleep(0.01)
        time.sleep(0.1)
        process.terminate()
        self.assertEqual((process.wait(), sorted(os.listdir(self.folder))), (-signal.SIGTERM, ["pipe", "x.npy"]))

    def test_signals_that_are_ignored_stay_so(self):
        def ignoring():
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        process = self.held("softmax", "-", "-o", "p.npy", preexec_fn=ignoring)
        process.send_signal(signal.SIGUSR1)
        process.stdin.write(bytes(15600))
        process.stdin.close()
        self.assertEqual((process.wait(), os.listdir(self.folder)), (0, ["p.npy"]))


class Threads(Case):
    def test_threads_that_cannot_be_started(self):
        x = self.save("x.npy", np.ones((300, 1000), "f4"))
        refused = 0
        for i in range(24):  # whichever thread meets the limit
            done = subprocess.run([TOOL, "softmax", x, "-o", self.path("p.npy"), "--threads", "64"], capture_output=True,
                                  preexec_fn=limited(resource.RLIMIT_AS, (80 + 10 * i) * MIB), timeout=120)
            if done.returncode == 0:
                os.unlink(self.path("p.npy"))
            else:
                told = done.stderr.decode()
                self.assertEqual((done.returncode, len(told.splitlines())), (1, 1), told)
                self.assertRegex(told, "a thread cannot be started; use fewer|not enough memory")
                refused += 1
            self.assertEqual(os.listdir(self.folder), ["x.npy"])
        self.assertGreater(refused, 0, "no thread was refused; the limits are too large for this machine")


if __name__ == "__main__":
    main()
