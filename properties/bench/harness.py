# SPDX-License-Identifier: Apache-2.0
"""The benchmark harness itself, without a benchmark: names, limits, records, tables and the picture, and `./dev gpu`."""

import contextlib
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import bench  # noqa: E402
import processes  # noqa: E402
import report  # noqa: E402
import works  # noqa: E402
from gpu import run as gpu  # noqa: E402
from works import Work  # noqa: E402


def record(**changes):
    """A record of made-up samples."""
    given = dict(
        work="softmax/rows/fp32/4096x1024",
        threads=2,
        unit="GB/s",
        samples={
            "ours": [30.0, 10.0, 20.0],
            "slow": [4.0, 5.0, 6.0],
            "fast": [12.0, 8.0, 10.0],
            "wrong": [99.0],
            "by hand": [25.0],
            "our loop, textbook operator": [15.0],
        },
        limits=[("copy, plain", 24.0), ("copy, plain", 26.0), ("copy, non-temporal", 25.0)],
        errors={"ours": 1e-7, "slow": 1e-3, "fast": 1e-6, "wrong": 0.3},
        notes={"slow": "allocates"},
        absent={"missing": "no bf16 here"},
        busy=0.01,
    )
    return report.record(**{**given, **changes})


class Names(unittest.TestCase):
    def test_every_listed_work_is_named_once_and_has_an_amount_and_a_program(self):
        self.assertEqual(len(works.ALL), len(set(works.ALL)))
        for work in works.ALL + [works.smaller(w) for w in works.ALL]:
            self.assertEqual(Work.named(work.name), work)
            self.assertGreater(works.amount(work)[0], 0)
            self.assertIn(work.verb, processes.PROGRAMS)

    def test_shapes(self):
        self.assertEqual(Work.named("reduce/log_sum_exp/fp32/64M").rows, (1, 2**26))
        self.assertEqual(Work.named("softmax/rows/bf16/100x1000003").rows, (100, 1000003))
        self.assertEqual(Work.named("decode/full/fp16/h32_kv8_n32768_d128").attention, (32, 8, 1, 32768, 128))
        self.assertEqual(Work.named("decode/full/fp16/h32_kv8_n32K_d128_q5").attention, (32, 8, 5, 32768, 128))
        self.assertEqual(Work.named("attention/causal/fp32/h8_n2000_d80").attention, (8, 8, 2000, 2000, 80))
        self.assertEqual([Work.named(f"decode/paged/bf16/h8_n64{p}").page for p in ("", "_p32")], [16, 32])

    def test_what_there_is_a_figure_to_reach_for_is_in_the_list(self):
        names = {w.name for w in works.ALL}
        for pattern, least in (
            ("reduce/log_sum_exp/fp32/(64M|512M)", 2),
            ("reduce/log_sum_exp/(bf16|fp16)/64M", 2),
            ("reduce/log_sum_exp_scalar/fp32/64M", 1),
            ("softmax/rows/fp32/(4096x1024|512x32000|1x64M)", 3),
            ("softmax/rows/(bf16|fp16)/(4096x1024|512x32000)", 4),
            ("softmax/(strided|in_place)/.*", 2),
            ("(log_softmax|logsumexp)/rows/(fp32|bf16)/.*", 4),
            ("cross_entropy/rows/(fp32|bf16|fp16)/512x32000", 3),
            ("scan/(plus|affine|log_sum_exp)/fp32/.*M", 3),
            ("reduce_segments/.*", 1),
            ("attention/(full|causal)/(fp32|bf16|fp16)/h8_n4096_d64", 6),
            ("attention/(full|causal)/(fp32|bf16)/h8_n4096_d128", 4),
            ("decode/full/(fp32|bf16|fp16)/h32(_kv8)?_n32768_d128", 6),
            ("decode/full/bf16/h32_kv8_n32768_d128_q(5|16)", 2),
            ("decode/paged/bf16/h32_kv8_n32768_d128", 1),
            ("math/(exp|log)/fp32/16K", 2),
        ):
            self.assertGreaterEqual(len([name for name in names if re.fullmatch(pattern, name)]), least, pattern)

    def test_a_name_in_no_list_is_a_work_of_its_own(self):
        self.assertEqual(works.chosen("softmax/rows/fp32/7x13"), [Work("softmax", "rows", "fp32", "7x13")])
        self.assertEqual(works.chosen("no such thing"), [])
        for wrong in ("softmax/rows/fp32", "softmax/rows/int8/7x13", "a b/c/fp32/7"):
            with self.assertRaises(works.NoSuchWork):
                Work.named(wrong)

    def test_a_contender_is_left_out_by_its_name(self):
        for who in ("TBB, two calls, -Ofast -march=native", "oneDNN 2.6 (Debian)", "a+b [c] *.^$|{1}\\?"):
            self.assertTrue(re.fullmatch(processes.literally(who), who))

    def test_a_filter_that_finds_nothing_is_a_sentence_and_2(self):
        for wrong in (
            "nothing_is_called_this",
            "softmax/rows/int8/7x13",
            "(",
        ):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(bench.main([wrong]), 2)
            self.assertRegex(said.getvalue(), r"^bench: .+\n$")


class Limits(unittest.TestCase):
    def test_the_fastest_copy_bounds_what_writes(self):
        work = Work.named("softmax/rows/fp32/4096x1024")
        size = 2 * 4 * 4096 * 1024
        name, figure = works.limit(work, 1, {"read": 1e-3, "copy, plain": 4e-3, "copy, non-temporal": 2e-3})
        self.assertEqual((name, figure), ("copy, non-temporal", size / 2e-3 / 1e9))

    def test_long_rows_are_read_twice(self):
        work = Work.named("softmax/rows/fp32/1x64M")
        _, figure = works.limit(work, 1, {"read": 1e-3, "read with prefetch": 2e-3, "copy, plain": 4e-3})
        self.assertAlmostEqual(figure, 2 * 4 * 2**26 / 5e-3 / 1e9)

    def test_multipliers_are_a_rate(self):
        work = Work.named("attention/full/bf16/h8_n4096_d64")
        name, figure = works.limit(work, 2, {"fma_fp32": 0.02, "dot_bf16": 0.01})
        self.assertEqual((name, figure), ("dot_bf16", 2 * 2**30 / 0.01 / 1e9))

    def test_causal_counts_half(self):
        full, causal = (works.amount(Work.named(f"attention/{w}/fp32/h8_n4096_d64"))[0] for w in ("full", "causal"))
        self.assertEqual(full, 4 * 8 * 4096 * 4096 * 64)
        self.assertEqual(causal, full / 2)
        self.assertEqual(works.amount(Work.named("decode/full/bf16/h32_kv8_n32768_d128"))[0], 2 * 8 * 32768 * 128 * 2)


class Records(unittest.TestCase):
    def test_fields_and_ratios(self):
        r = record()
        self.assertEqual(tuple(r), report.FIELDS)
        self.assertEqual((r["ours"], r["limit"], r["fraction_of_limit"]), (20, 25, 0.8))
        self.assertEqual(r["peers"], {"slow": 5, "fast": 10, "wrong": 99})
        self.assertEqual((r["best_peer"], r["ratio_to_best_peer"]), ("fast", 2))
        self.assertEqual(r["also"], {"by hand": 25, "our loop, textbook operator": 15})
        self.assertEqual(r["spread"]["ours"], 1)
        self.assertIn("not ranked", r["notes"]["wrong"])
        self.assertEqual((r["error"], r["absent"]), (1e-7, {"missing": "no bf16 here"}))
        json.dumps(r, allow_nan=False)

    def test_without_limit_and_without_peers(self):
        r = record(samples={"ours": [3.0]}, limits=[], errors={"ours": 0.0}, notes={})
        self.assertEqual((r["limit"], r["fraction_of_limit"], r["best_peer"], r["ratio_to_best_peer"]), (None,) * 4)
        self.assertTrue(list(report.lines_of(r)))

    def test_what_is_missing_wrong_or_noisy_is_said(self):
        text = "\n".join(report.lines_of(record(busy=0.3)))
        for said in ("NOISY", "missing", "no bf16 here", "wrong by 30%", "BUSY", "2.00x", "allocates"):
            self.assertIn(said, text)
        table = list(report.markdown([record()]))
        self.assertEqual({line.count("|") for line in table}, {9})
        self.assertIn("| 1.0e-07 | 1.0e-06 fast |", table[-1])
        self.assertIn("| **1.0e-08** slow |", list(report.markdown([record(errors={"ours": 1e-7, "slow": 1e-8})]))[-1])

    def test_who_is_far_behind_is_a_peer(self):
        samples = {"ours": [9.0], "near": [2.5], "far": [2.0], "by hand": [1.0], "our loop, textbook operator": [1.0]}
        self.assertEqual(report.far_behind(samples), {"far"})
        self.assertEqual(report.far_behind({"far": [2.0]}), set())

    def test_wrong_is_worse_than_we_are(self):
        r = record(errors={"ours": 0.31, "slow": 0.32, "fast": 0.4, "wrong": 9.0})
        self.assertEqual((r["best_peer"], set(r["notes"])), ("slow", {"fast", "wrong", "slow"}))
        self.assertEqual(record(errors={"ours": 1e-7, "slow": 0.04, "fast": 0.06})["best_peer"], "wrong")

    def test_ranked_anew(self):
        r, stale = record(), record(errors={})
        self.assertEqual(report.ranked(r), r)
        self.assertEqual(report.ranked(stale | {"peer_errors": r["peer_errors"], "error": r["error"]}), r)
        self.assertEqual(report.ranked(r | {"peer_errors": {}, "notes": r["notes"] | {"fast": "wrong by inf%, not ranked"}}),
                         stale | {"error": r["error"]})

    def test_two_operators_in_two_loops(self):
        samples = {
            "ours": [50.0],
            "our loop, textbook operator": [8.0],
            "std, our operator": [9.0],
            "TBB, textbook operator": [2.0],
            "std, textbook operator": [3.0],
            "TBB, textbook operator, -Ofast -march=native": [7.0],
            "ours, -march=native": [40.0],
            "Eigen, two calls, -march=native": [20.0],
            "PyTorch": [30.0],
        }
        table = list(report.two_by_two([record(work="reduce/log_sum_exp/fp32/64M", samples=samples), record()]))
        self.assertEqual(
            [row.split(" | ")[2:] for row in table[2:]],
            [
                ["-O3", "3 std", "9 std", "8", "50", " |"],
                ["-Ofast -march=native", "7 TBB", "", "", "", " |"],
                ["-march=native", "", "", "", "40", "20 Eigen |"],
            ],
        )
        self.assertEqual(list(report.two_by_two([record()])), [])

    def test_the_picture(self):
        svg = xml.etree.ElementTree.fromstring("\n".join(report.plot([record(), record(limits=[])], "a < b")))
        name = lambda tag: f"{{http://www.w3.org/2000/svg}}{tag}"
        self.assertEqual(len(svg.findall(name("rect"))), 2)  # the background and one bar: no limit, no bar
        self.assertEqual(len([c for c in svg.findall(name("circle")) if c.find(name("title")) is not None]), 3)

    def test_from_a_file_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = lambda name: str(pathlib.Path(folder) / name)
            result = {
                "machine": {"processor": "P", "target": "x86-64-v3", "date": "D"},
                "versions": {},
                "limits": {},
                "records": [record()],
                "bits": [],
                "memory": [{"work": "attention/full/fp32/h1_n64_d64", "threads": 2, "who": "ours", "bytes": 3 << 19}],
            }
            pathlib.Path(file("in.json")).write_text(json.dumps(result))
            self.assertEqual(
                bench.main(
                    [
                        "--from",
                        file("in.json"),
                        "--json",
                        file("out.json"),
                        "--plot",
                        file("out.svg"),
                        "--markdown",
                        file("out.md"),
                    ]
                ),
                0,
            )
            self.assertEqual(json.loads(pathlib.Path(file("out.json")).read_text()), result)
            xml.etree.ElementTree.parse(file("out.svg"))
            table = pathlib.Path(file("out.md")).read_text()
            self.assertIn("2.00x fast", table)
            self.assertIn("P, target x86-64-v3, D", table)
            self.assertIn("\n\n| work | threads |", table)
            self.assertIn("| 2 | ours | 1.5 MiB |\n", table)
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(bench.main(["--from", file("in.json"), "nothing"]), 2)

    def test_committed_results_keep_the_schema(self):
        for path in (ROOT / "bench" / "results").glob("*.json"):
            result = json.loads(path.read_text())
            self.assertLessEqual({"processor", "date", "commit"}, result["machine"].keys(), path.name)
            for r in result["records"]:
                self.assertEqual(tuple(r), report.FIELDS, path.name)
                Work.named(r["work"])


class Gpu(unittest.TestCase):
    """./dev gpu, as far as it goes without one."""

    def said(self, *given):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            return gpu.main(list(given)), said.getvalue()

    def test_without_a_gpu_it_says_so(self):
        if not gpu.clocks():
            self.assertEqual(self.said(), (1, "gpu: no NVIDIA GPU answers (nvidia-smi); `./dev test` holds what a CPU can\n"))

    def test_a_filter_that_finds_nothing_is_a_sentence_and_2(self):
        for wrong in ("nothing_is_called_this", "softmax/rows/int8/7x13", "("):
            status, sentence = self.said(wrong)
            self.assertEqual(status, 2)
            self.assertRegex(sentence, r"^gpu: .+\n$")

    def test_every_work_has_an_entry_of_ours(self):
        entries = re.findall(r'{"(\S+/\S+/\S+)"', (ROOT / "bench/gpu/ours.cu").read_text())
        self.assertLessEqual({f"{w.verb}/{w.what}/{w.type}" for w in gpu.ALL}, set(entries))
        self.assertEqual(len(entries), len(set(entries)))

    def test_verdicts(self):
        self.assertEqual(gpu.verdict(0, "2 faults"), "passed")
        self.assertEqual(gpu.verdict(77, "no CUDA device\n\n"), "exit status 77: no CUDA device")
        self.assertEqual(gpu.verdict(-11, ""), "exit status -11: no output")
        forks = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
        self.assertEqual(gpu.run([sys.executable, "-c", forks], 0.5), "more than 0 s")
        self.assertEqual(gpu.run([sys.executable, "-c", "import os; print(os.environ['A']); exit(3)"], 9, A="b"),
                         "exit status 3: b")

    def test_works_that_cannot_be_measured_are_named(self):
        if not gpu.clocks():
            found, said = gpu.measured_apart(gpu.ALL[:2], pathlib.Path("/nowhere"), 60)
            self.assertEqual(found, {"limits": {}, "records": []})
            self.assertRegex(said, "^exit status 1: .*Error")

    def test_what_it_writes(self):
        r = record(work="attention/full/bf16/h4_n64_d64", threads=None)
        self.assertIn("attention/full/bf16/h4_n64_d64  ", next(report.lines_of(r)))
        with tempfile.TemporaryDirectory() as folder:
            files = {kind: f"{folder}/{kind}" for kind in ("json", "plot", "markdown")}
            given = [word for kind, file in files.items() for word in (f"--{kind}", file)]
            machine = {"processor": "P", "date": "D", "commit": "C"}
            result = {"machine": machine, "tests": [["t, memcheck", "passed"]], "limits": {"copy": {"": 2.0}}, "records": [r]}
            gpu.written(gpu.arguments(given), result)
            self.assertEqual(json.loads(pathlib.Path(files["json"]).read_text()), result)
            xml.etree.ElementTree.parse(files["plot"])
            table = pathlib.Path(files["markdown"]).read_text()
            self.assertIn("| t, memcheck | passed |", table)
            self.assertIn("2.00x fast", table)


if __name__ == "__main__":
    unittest.main()
