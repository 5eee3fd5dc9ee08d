# SPDX-License-Identifier: Apache-2.0
# Many people read only --help: the statements that an answer depends on are there, and true.
import json
import os
import re

import numpy as np

from support import Case, main

SAYS = {
    "": ["softmax", "reduce", "scan", "attention", "merge", "laws", "info", "Exit status: 0 done, 2 wrong command line, 1",
         "share/regroup/output.schema.json", "float16, bfloat16 (the 2-byte void type", "Fortran order", "NaN, Infinity and -Infinity"],
    "softmax": ["integers and bool are refused", "The result has X's type", "holds NaN or +inf, or only -inf, is NaN throughout",
                "logsumexp of an empty row is -inf", "Memory:", "TMPDIR"],
    "reduce": ["moments adds a last axis of 3: count, mean, variance", "mean float64 for integers",
               "log_sum_exp natural logarithm; float32, float64 for float64 and integers", "the result wraps to X's type",
               "a product of floats neither overflows nor underflows on the way",
               "argmin, argmax int64: the lowest index among equals (-0 equals 0), the first NaN's",
               "R.values.npy and R.indices.npy", "R.top_k.values.npy", "largest first, the lowest index first among equals, NaN above +inf",
               "closed left and open right, the last closed on both sides; outside and NaN are not counted",
               "X is (..., n, 1 + d), a score and its d values a row", "reduces axis -2, also without --axis",
               "16-bit floats stay 16-bit", "bool has any, all and count only", "NaN in, NaN out", "Of nothing: sum 0, product 1",
               "the others are errors", "R.NAME.npy", "Memory:", "in blocks of 8 MiB", "TMPDIR"],
    "scan": ["X is (..., n, 2)", "(A, B) and then (a, b) is (a A, a B + b)", "integers wrap", "bool has any, all and count only",
             "--reverse flips the axis, scans, and flips back", "log_sum_exp natural logarithm; float32, float64 for float64 and integers",
             "NaN from there on", "Memory:", "TMPDIR"],
    "attention": ["One input may be '-'", "integers and bool are refused", "float32 (float64 for float64)",
                  "only -inf hides", "A hidden key contributes nothing", "a query that sees no key gets 0 and logsumexp -inf", "Memory:", "never Nq x Nk"],
    "merge": ["have the states' type: float32, or float64", "in the order given", "Memory: two states"],
    "laws": ["Monoids: sum,", "exit status 1 if one falls"],
    "info": ["instruction_sets are those that the processor has, target is the one in use", "REGROUP_TARGET"],
}
EVERYWHERE = ["--threads", "--device cpu|cuda", "or an NVIDIA GPU, with the bits of the CPU", "above 1024 as 1024", "--json", "--quiet", "--help",
              "share/regroup/output.schema.json", "Exit status: 0 done"]


class Help(Case):
    def test_statements(self):
        for command, statements in SAYS.items():
            text = " ".join(self.ok(*[command] * bool(command), "--help").split())
            for statement in statements + EVERYWHERE * bool(command):
                self.assertIn(statement, text, command)

    def test_names_of_laws(self):
        text = " ".join(self.ok("laws", "--help").split())
        named = re.search(r"Monoids: ([a-z_, ]+); each over", text)[1].split(", ")
        self.assertEqual(sorted(named), sorted(self.json("laws", "--cases", "1")["monoids"]))

    def test_types_of_results(self):
        """Each type that reduce and scan promise, of every type of X."""
        real = {"f2": "float32", "f4": "float32", "f8": "float64", "i4": "float64", "i8": "float64"}
        for kind, wide in real.items():
            own = np.dtype(kind).name
            x = self.save("x.npy", np.ones((4, 3), kind))
            types = {"sum": own, "product": own, "min": own, "max": own, "log_sum_exp": wide, "count": "int64", "any": "bool",
                     "all": "bool"}
            for name, type in types.items():
                told = self.json("scan", x, "--with", name, "-o", self.path("y.npy"))
                self.assertEqual(told["output"]["type"], type, (kind, name))
            types |= {"mean": "float64" if kind[0] == "i" else own, "moments": wide, "argmin": "int64", "argmax": "int64",
                      "top_k.values": own, "top_k.indices": "int64", "histogram": "int64"}
            told = self.json("reduce", x, "--with", "sum,product,min,max,log_sum_exp,count,any,all,mean,moments,argmin,argmax,"
                             "top_k:2,histogram:0,1,2", "--axis", "0", "-o", self.path("r.npy"))
            self.assertEqual({name: file["type"] for name, file in told.items()}, types, kind)
            self.assertEqual(told["moments"]["shape"], [3, 3])
            self.assertEqual(told["top_k.values"]["shape"], [2, 3])
            for command in [["softmax", x], ["attention", x, x, x], ["reduce", x, "--with", "softmax_mean"]]:
                if kind[0] == "i":
                    self.fails(1, *command, "-o", self.path("no.npy"), says=own)
                else:
                    self.assertEqual(self.json(*command, "-o", self.path("p.npy")).popitem()[1]["type"], own)
        bits = self.save("x.npy", np.ones((4, 3), "?"))
        for name in ["sum", "min", "mean", "moments", "log_sum_exp", "argmax", "top_k:1", "histogram:0,1,2"]:
            self.fails(1, "reduce", bits, "--with", name, says="bool")

    def test_schema_is_that_of_the_sources(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/tool/output.schema.json")) as f:
            commands = set(json.load(f)["$defs"]) - {"file", "values", "target"}
        self.assertEqual(commands, set(SAYS) - {""})


if __name__ == "__main__":
    main()
