# SPDX-License-Identifier: Apache-2.0
# Errors in the words alone give exit status 2 and one sentence, before any file is opened.
import io
import json
import os
import re
import subprocess
import time

import numpy as np

from support import TOOL, Case, main

WRONG = [
    ([], "command is missing"),
    (["sofmax", "x.npy"], "unknown command 'sofmax'"),
    (["merges", "a", "-o", "o.npy"], "unknown command 'merges'"),
    (["merge"], "STATE_DIR is missing"),
    (["merge", "a"], "-o is missing"),
    (["merge", "-o", "o.npy"], "STATE_DIR is missing"),
    (["merge", "a", "-o", "o.npy", "--lse", "./o.npy"], "same name"),
    (["merge", "a", "-o", "o.npy", "--split", "2"], "--split"),
    (["softmax"], "X is missing"),
    (["softmax", "x.npy"], "-o is missing"),
    (["softmax", "x.npy", "-o"], "needs a value"),
    (["softmax", "x.npy", "-o", "--log"], "needs a file name"),
    (["softmax", "x.npy", "-o", "p.npy", "-o", "q.npy"], "more than once"),
    (["softmax", "x.npy", "-o", "p.npy", "--lse"], "needs a value"),
    (["softmax", "x.npy", "-o", "p.npy", "--lse", "p.npy"], "same name 'p.npy'"),
    (["softmax", "x.npy", "y.npy", "-o", "p.npy"], "unexpected word 'y.npy'"),
    (["softmax", "x.npy", "-o", "p.npy", "--axis", "0,1"], "--axis needs one integer"),
    (["softmax", "x.npy", "-o", "p.npy", "--axis", "last"], "--axis needs one integer"),
    (["softmax", "x.npy", "-o", "p.npy", "--axis", "2147483648"], "--axis needs one integer from -64 to 63; got '2147483648'"),
    (["reduce", "x.npy", "--with", "sum", "--axis", "0,-9999999999"], "--axis needs integers from -64 to 63, separated by commas"),
    (["softmax", "x.npy", "-o", "p.npy", "--windw", "3"], "unknown option '--windw'"),
    (["softmax", "x.npy", "-o", "-"], "file name"),
    *((["softmax", "x.npy", "-o", "p.npy", "--scale", s], "--scale") for s in ["nan", "inf", "-inf", "1e999", "x", "1x", ""]),
    *((["softmax", "x.npy", "-o", "p.npy", "--threads", n], "--threads") for n in ["0", "-1", "two", "1.5", "99999999999"]),
    (["--threads", "0", "info"], "--threads"),
    *(([*words, number], "a whole number from 1 to ") for number in ["0", "99999999999999999999"] for words in
      [["info", "--threads"], ["laws", "--cases"], ["attention", "q.npy", "k.npy", "v.npy", "-o", "o.npy", "--split"]]),
    (["info", "--threads", "99999999999"], "from 1 to 2147483647; got '99999999999'"),
    (["reduce", "x.npy", "--with", "top_k:99999999999999999999"], "from 1 to 9223372036854775807"),
    (["laws", "sum", "max", "sum"], "sum twice"),
    (["softmax", "x.npy", "-o", "p.npy", "--device", "tpu"], "cpu or cuda"),
    *(([*words, "--device", "cuda"], ["--device cuda: ", says, "use --device cpu"]) for words, says in
      [(["laws"], "laws"), (["merge", "a", "-o", "o.npy"], "states"), (["reduce", "x.npy", "--with", "sum,top_k:3"], "top_k"),
       (["reduce", "x.npy", "--with", "histogram:0,1,2"], "histogram"), (["reduce", "x.npy", "--with", "softmax_mean"], "softmax_mean"),
       (["attention", "q.npy", "k.npy", "v.npy", "-o", "o.npy", "--split", "2"], "--split"),
       (["attention", "q.npy", "k.npy", "v.npy", "--state-out", "s"], "--state-out")]),
    (["reduce", "x.npy"], "--with is missing"),
    (["reduce", "x.npy", "--with"], "needs a value"),
    (["reduce", "x.npy", "--with", "median"], ["'median'", "log_sum_exp"]),
    *((["reduce", "x.npy", "--with", names], ["a comma too many", f"'{names}'"]) for names in ["sum,", ",sum", "sum,,max", ","]),
    (["reduce", "x.npy", "--with", ":3"], "''"),
    (["reduce", "x.npy", "--with", "Sum"], "'Sum'"),
    (["reduce", "x.npy", "--with", "affine"], "'affine'"),
    (["reduce", "x.npy", "--with", "sum:3"], "no parameter"),
    (["reduce", "x.npy", "--with", "sum,max,sum"], "sum twice"),
    *((["reduce", "x.npy", "--with", t], "top_k") for t in ["top_k", "top_k:", "top_k:0", "top_k:-3", "top_k:1.5", "top_k:x"]),
    *((["reduce", "x.npy", "--with", h], "histogram") for h in
      ["histogram", "histogram:0,1", "histogram:0,1,sum", "histogram:1,0,3", "histogram:0,1,0", "histogram:0,1,-1",
       "histogram:nan,1,3", "histogram:0,inf,3", "histogram:0,1,2.5", "histogram:0,1,99999999999999999999",
       "histogram:-1e308,1e308,3"]),
    (["reduce", "x.npy", "--with", "sum", "--axis", "0,0"], "twice"),
    (["reduce", "x.npy", "--with", "sum", "--axis", "0,"], "--axis"),
    (["reduce", "x.npy", "--with", "sum", "--axis", "(0,1)"], "--axis"),
    (["scan", "x.npy", "-o", "y.npy"], "--with is missing"),
    *((["scan", "x.npy", "--with", w, "-o", "y.npy"], w) for w in ["mean", "argmax", "moments", "top_k:3", "sum,max", "histogram:0,1,2"]),
    (["scan", "x.npy", "--with", "sum"], "-o is missing"),
    (["scan", "x.npy", "--with", "affine", "--axis", "-1", "-o", "y.npy"], ["affine", "--axis -2"]),
    *((["reduce", "x.npy", "--with", names, "--axis", axis], ["softmax_mean", f"-2; --axis names {axis}"])
      for names, axis in [("softmax_mean", "-1"), ("softmax_mean", "-3"), ("sum,softmax_mean", "-1"), ("softmax_mean", "0,1")]),
    (["attention", "q.npy", "k.npy", "-o", "o.npy"], "V is missing"),
    (["attention", "q.npy", "k.npy", "v.npy"], "-o is missing"),
    (["attention", "q.npy", "k.npy", "v.npy", "-o", "o.npy", "--causal=middle"], "'middle'"),
    (["attention", "q.npy", "k.npy", "v.npy", "-o", "o.npy", "--causal", "top-left"], "unexpected word 'top-left'"),
    (["attention", "q.npy", "k.npy", "v.npy", "-o", "o.npy", "--split", "0"], "--split"),
    (["attention", "q.npy", "k.npy", "v.npy", "-o", "o.npy", "--scale", "inf"], "--scale"),
    (["attention", "q.npy", "k.npy", "v.npy", "-o", "o.npy", "--window", "9223372036854775808,0"],
     "LEFT,RIGHT from 0 to 9223372036854775807, or -1 for no limit; got '9223372036854775808,0'"),
    (["attention", "-", "-", "v.npy", "-o", "o.npy"], "standard input"),
    (["attention", "-", "k.npy", "v.npy", "-o", "o.npy", "--sinks", "-"], "standard input"),
    *((["attention", "q.npy", "k.npy", "v.npy", "-o", "o.npy", *option.split()], option.split()[0].split("=")[0]) for option in
      ["--scale nan", "--scale -inf", "--scale=", "--softcap 0", "--softcap -1", "--softcap -.5", "--softcap inf", "--softcap -inf",
       "--softcap nan", "--softcap x", "--softcap 1e999", "--softcap 1e-999",
       "--scale -1e999", "--scale 1e-999x", "--window 1", "--window 1,2,3", "--window -2,0", "--window 0,-2",
       "--window 1.5,2", "--window ,", "--window x,y", "--window 1,", "--window=", "--window", "--split -1", "--split 1.5",
       "--threads 0", "--threads -3", "--alibi", "--sinks", "--mask", "--kv-lengths", "--page-table", "--state-out", "--alibi --quiet",
       "--state-out=", "--state-out -x"]),
    (["attention", "q.npy", "k.npy", "v.npy", "--state-out", "s", "--sinks", "s.npy"], ["--sinks", "--state-out"]),
    (["attention", "q.npy", "k.npy", "v.npy", "--state-out", "s", "-o", "./s/o.npy"], "same name"),
    (["attention", "q.npy", "k.npy", "v.npy", "--state-out", "s/", "--lse", "s/m.npy"], "same name"),
    (["attention", "q.npy", "k.npy", "v.npy", "--lse", "l.npy"], "-o is missing"),
    (["softmax", "x.npy", "-o", "p.npy", "--scale", "-.5x"], "--scale"),
    *((["softmax", "x.npy", "-o", "p.npy", *option.split()], option.split()[0]) for option in
      ["--scale +-1", "--scale ++1", "--axis +-1", "--axis ++1", "--axis -+1", "--threads +-2"]),
    *((["reduce", "x.npy", "--with", "sum", flag], [flag.split("=")[0], "no value"]) for flag in
      ["--keepdims=7", "--keepdims=", "--keepdims=false", "--json=3", "--json=true", "--quiet=x", "--help=3", "--version=1"]),
    (["softmax", "x.npy", "-o", "p.npy", "--log=maybe"], ["--log", "'maybe'"]),
    (["scan", "x.npy", "--with", "sum", "-o", "y.npy", "--exclusive=0"], ["--exclusive", "'0'"]),
    (["scan", "x.npy", "--with", "sum", "-o", "y.npy", "--reverse=0"], ["--reverse", "'0'"]),
    (["info", "--measure=5"], "--measure takes no value"),
    (["attention", "q.npy", "k.npy", "v.npy", "-o", "o.npy", "--causal="], ["--causal", "bottom-right", "''"]),
    *((["attention", "q.npy", "k.npy", "v.npy", "-o", "o.npy", "--causal", *again], ["--causal", "more than once"]) for again in
      [["--causal"], ["--causal=top-left"], ["--mask", "m.npy", "--causal=bottom-right"]]),
    (["laws", "--cases", "0"], "--cases"),
    (["laws", "--seed", "-1"], "--seed"),
    (["laws", "median"], "'median'"),
    (["info", "now"], "unexpected word 'now'"),
    (["[a]", "x.npy"], "unknown command '[a]'"),
    (["softmax", "x.npy", "[y,z]", "-o", "p.npy"], "unexpected word '[y,z]'"),
    (["softmax", "x.npy", "-o", "p.npy", "--axis", "[0]"], ["--axis needs one integer", "got '[0]'"]),
    *((["laws", words], f"'{words}'") for words in ["[sum]", "[sum,max]", "[]"]),
    (["merge", "a", "-o", "o.npy", "--lse", "[]", "--threads", "[2]"], "--threads needs a whole number"),
]


class CommandLine(Case):
    def test_wrong_words(self):
        for words, says in WRONG:
            with self.subTest(words):
                self.fails(2, *words, says=says)

    def test_the_help_that_is_pointed_to(self):
        for words in [["reduce", "x.npy", "--with", "sum", "--keepdims=maybe"], ["--quiet=1", "reduce", "x.npy"],
                      ["attention", "q.npy", "--causal="], ["softmax", "x.npy", "--log=1"], ["scan", "--with"], ["info", "now"]]:
            command = next(word for word in words if word[0] != "-")
            told = self.run_tool(*words).stderr.decode().splitlines()
            self.assertEqual(told[1:], [f"Try 'regroup {command} --help'."], words)
        self.assertEqual(self.run_tool("--json=1").stderr.decode().splitlines()[1:], ["Try 'regroup --help'."])

    def test_words_in_brackets_are_words(self):
        for name in ["[a]", "[a,b]", "[]", "[[a]]", "a"]:
            self.fails(1, "merge", name, "-o", self.path("o.npy"), says=f"regroup: {name}/m.npy: cannot be opened")
            os.mkdir(self.path(name))
            for file, shape in [("m", (2,)), ("l", (2,)), ("o", (2, 3))]:
                self.save(f"{name}/{file}.npy", np.ones(shape, "f4"))
        x = self.save("x.npy", np.ones((2, 3), "f4"))
        for words in [["softmax", x, "-o", "[p]"], ["merge", "[a]", "a", "[]", "[a,b]", "-o", "[p]"]]:
            subprocess.run([TOOL, *words], cwd=self.folder, check=True)
            self.assertEqual(np.load(self.path("[p]")).shape, (2, 3))
            os.unlink(self.path("[p]"))

    def test_a_scale_below_every_number(self):
        x = self.save("x.npy", self.random.normal(size=(3, 4)))
        for tiny, zero in [("1e-400", "0"), ("-1e-400", "-0"), ("1e-99999", "0"), ("4e-324", "5e-324")]:
            for words in [("softmax", x), ("attention", x, x, x)]:
                self.assertSameBits(self.array(*words, "--scale", tiny), self.array(*words, "--scale", zero), tiny)

    def test_help_and_version(self):
        self.assertRegex(self.ok("--version"), r"^regroup \d+\.\d+\.\d+\n$")
        self.assertEqual(self.ok("softmax", "--version"), self.ok("--version"))
        everything = self.ok("--help")
        for command in ["softmax", "reduce", "scan", "attention", "merge", "laws", "info"]:
            self.assertIn(command, everything)
            text = self.ok(command, "--help")
            for option in ["--threads", "--device", "--json", "--quiet", "--help"]:
                self.assertIn(option, text)
        for option in ["--axis", "--log", "--scale", "--lse", "-o"]:
            self.assertIn(option, self.ok("softmax", "-h"))

    def test_options_stand_anywhere(self):
        x = self.save("x.npy", np.arange(6.0).reshape(2, 3))
        for words in [["--threads", "2", "reduce", x, "--with", "sum", "--axis", "-1"],
                      ["reduce", "--axis", "-1", "--with", "sum", x, "--threads", "2"],
                      ["reduce", "--axis=-1", "--with=sum", "--threads=2", "--quiet", x],
                      ["--quiet", "reduce", x, "--with", "sum", "--axis", "+1"]]:
            self.assertEqual(self.ok(*words), "sum 3.0 12.0\n")
        self.assertEqual(self.ok("reduce", x, "--with", "sum", "--axis", "-1,-2"), "sum 15.0\n")
        for scale in ["-.5", "-0.5", "-5e-1", "=-.5"]:  # a value may begin with a minus
            words = ["--scale" + scale] if scale[0] == "=" else ["--scale", scale]
            self.assertSameBits(self.array("softmax", x, *words), self.array("softmax", x, "--scale=-0.5"))

    def test_cuda_without_a_gpu(self):
        """One sentence before any file is opened, and no output; which sentence, the build decides."""
        if self.json("info")["gpu"] is not None:
            self.skipTest("there is a GPU")
        x = self.save("x.npy", np.ones((3, 2, 2), "f4"))
        for words in [["softmax", x, "-o", self.path("p.npy"), "--lse", self.path("l.npy")], ["reduce", x, "--with", "sum"],
                      ["reduce", "-", "--with", "sum,max", "-o", self.path("r.npy")], ["scan", x, "--with", "sum", "-o", self.path("y.npy")],
                      ["attention", x, x, x, "-o", self.path("o.npy")], ["softmax", "none.npy", "-o", self.path("p.npy")], ["info"]]:
            done = self.run_tool(*words, "--device", "cuda")
            self.assertIn("built without CUDA" if "built without CUDA" in self.ok("info") else "found none", done.stderr.decode())
            self.fails(1, *words, "--device", "cuda", says=["--device cuda", "use --device cpu"])

    def test_standard_output_that_is_full(self):
        x = self.save("x.npy", np.ones(3))
        many = self.save("many.npy", np.ones((20000, 2)))  # more than is kept until the end
        for words in [("reduce", x), ("reduce", many, "--axis", "1"), ("reduce", many, "--axis", "1", "--json")]:
            with open("/dev/full", "w") as full:
                done = subprocess.run([TOOL, *words, "--with", "sum"], stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, b"regroup: standard output cannot be written: no space left on device\n")

    def on_a_terminal(self, *words):
        """Runs the tool with a terminal as standard error; its input stands still for a while. Returns what it showed."""
        try:
            ours, theirs = os.openpty()
        except OSError as error:  # a chroot without /dev/pts
            self.skipTest(f"no pseudo-terminal here: {error}")
        data = io.BytesIO()
        np.save(data, np.ones(1000))
        process = subprocess.Popen([TOOL, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        process.stdin.write(data.getvalue()[:-8])
        process.stdin.flush()
        time.sleep(2.5)
        out, _ = process.communicate(data.getvalue()[-8:])
        self.assertEqual((process.returncode, out), (0, b"sum 1000.0\n"))
        shown = b""
        try:
            while piece := os.read(ours, 1000):
                shown += piece
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        return shown.decode()

    def test_progress_only_on_a_terminal(self):
        shown = self.on_a_terminal("reduce", "-", "--with", "sum")
        self.assertIn("regroup reduce standard input", shown)
        self.assertTrue(shown.endswith("\r\033[K"), repr(shown))  # the line is gone at the end
        self.assertEqual(self.on_a_terminal("reduce", "-", "--with", "sum", "--quiet"), "")

    def test_laws(self):
        lines = self.ok("laws", "sum", "affine", "--cases", "20", "--seed", "7").splitlines()
        self.assertIn("seed 7", lines[1])
        self.assertRegex(lines[3], r"^law +cases +sum +affine$")
        self.assertTrue(any(re.match(r"^associativity +20 +([0-9.e-]+|=) +([0-9.e-]+|=)$", line) for line in lines), lines)
        self.assertTrue(any(re.match(r"^identity on the left +20 +=  +=$", line) for line in lines), lines)
        self.assertRegex(lines[-1], r"^\d+ laws of 2 monoids, all hold$")
        everything = self.json("laws", "--cases", "5")
        self.assertTrue(everything["passed"])
        self.assertEqual(len(everything["monoids"]), 16)
        self.assertEqual(everything["monoids"]["log_sum_exp"]["checks"]["associativity"]["cases"], 5)

    def test_info(self):
        text = self.ok("info")
        for word in ["version", "order", "threads", "target"]:
            self.assertIn(word, text)
        told = json.loads(self.ok("info", "--json"))
        self.assertIn("\ninstruction_sets " + " ".join(told["instruction_sets"]) + "\n", text)
        if told["gpu"] is None:
            self.assertRegex(text, r"\ngpu none \(.+\)\n")
        else:
            self.assertIn("\ngpu " + told["gpu"]["name"] + ", compute capability", text)

    def test_instruction_sets(self):
        everything = ["baseline", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-bf16", "x86-64-v4-amx"]
        has = self.json("info")["instruction_sets"]
        self.assertEqual(has, everything[:len(has)])
        for target in everything:
            if target in has:  # all that it has, whichever is in use
                told = self.json("info", env={"REGROUP_TARGET": target})
                self.assertEqual((told["target"], told["instruction_sets"]), (target, has))
            else:
                self.fails(1, "info", env={"REGROUP_TARGET": target}, says=[target, "lacks"])

    def test_measuring_takes_seconds(self):
        for words, env in [([], {"REGROUP_TARGET": "baseline"}), (["--threads", 1024], {})]:
            start = time.monotonic()
            self.ok("info", "--measure", *words, env=env)
            self.assertLess(time.monotonic() - start, 10, (words, env))


if __name__ == "__main__":
    main()
