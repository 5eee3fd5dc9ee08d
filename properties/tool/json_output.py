# SPDX-License-Identifier: Apache-2.0
# What --json prints has the shape that src/tool/output.schema.json documents, for every command.
import json
import os
import subprocess

import numpy as np

from support import TOOL, Case, main

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/tool/output.schema.json")) as f:
    SCHEMA = json.load(f)
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$ref", "anyOf", "enum", "type", "properties", "required", "additionalProperties", "items", "description"}


def fits(value, schema):
    """The part of JSON Schema that the file uses. Returns what does not fit, or None."""
    assert set(schema) <= KNOWN, schema
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    if "anyOf" in schema:
        faults = [fits(value, s) for s in schema["anyOf"]]
        return None if None in faults else faults
    if "enum" in schema:
        return None if value in schema["enum"] else f"{value!r} is not one of {schema['enum']}"
    kind = schema["type"]
    if kind in ("number", "integer"):
        right = isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
    else:
        right = isinstance(value, TYPES[kind])
    if not right:
        return f"{value!r} is no {kind}"
    faults = []
    if kind == "array":
        faults = [fits(item, schema["items"]) for item in value]
    if kind == "object":
        members = schema.get("properties", {})
        faults = [f"{name} is missing" for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            rest = schema.get("additionalProperties", True)
            if name in members:
                faults.append(fits(item, members[name]))
            elif rest is False:
                faults.append(f"{name} is not documented")
            elif rest is not True:
                faults.append(fits(item, rest))
    faults = [fault for fault in faults if fault]
    return faults or None


class JsonOutput(Case):
    def told(self, command, *words, members=None):
        value = self.json(command, *words)
        self.assertIsNone(fits(value, SCHEMA["$defs"][command]), value)
        if members is not None:
            self.assertEqual(list(value), members)
        return value

    def test_the_checker_refuses(self):
        good = {"path": "x", "type": "float32", "shape": [1]}
        self.assertIsNone(fits(good, SCHEMA["$defs"]["file"]))
        for bad in [{**good, "type": "float"}, {**good, "more": 1}, {"path": "x"}, {**good, "shape": ["1"]}, 3, None]:
            self.assertIsNotNone(fits(bad, SCHEMA["$defs"]["file"]), bad)

    def test_every_command(self):
        x = self.save("x.npy", self.random.normal(size=(4, 6)))
        out, lse = self.path("o.npy"), self.path("l.npy")
        self.told("softmax", x, "-o", out, members=["output"])
        told = self.told("softmax", x, "-o", out, "--lse", lse, members=["output", "lse"])
        self.assertEqual(told["lse"], {"path": lse, "type": "float64", "shape": [4]})
        self.told("scan", x, "--with", "sum", "-o", out, members=["output"])
        qkv = [self.save(n + ".npy", self.random.normal(size=(2, 5, 8)).astype("f4")) for n in "qkv"]
        state = self.path("s")
        self.told("attention", *qkv, "-o", out, members=["output"])
        self.told("attention", *qkv, "-o", out, "--lse", lse, "--state-out", state, members=["output", "lse", "state"])
        self.told("attention", *qkv, "--state-out", state, members=["state"])
        self.told("merge", state, state, "-o", out, "--lse", lse, members=["output", "lse"])
        self.assertEqual(len(self.told("laws", "--cases", "3")["monoids"]), 16)
        self.told("info")

    def test_reduce(self):
        x = self.save("x.npy", np.array([[1.5, np.nan, -np.inf], [0, -0.0, np.inf]]))
        names = "sum,min,argmax,count,moments,any,top_k:2,histogram:0,1,3"
        members = ["sum", "min", "argmax", "count", "moments", "any", "top_k.values", "top_k.indices", "histogram"]
        for axis in ["0", "1", "0,1"]:
            values = self.told("reduce", x, "--with", names.replace("top_k:2", "top_k:1"), "--axis", axis, members=members)
            self.assertEqual(np.shape(values["count"]), {"0": (3,), "1": (2,), "0,1": ()}[axis])
        told = self.told("reduce", x, "--with", names, "--axis", "1", "-o", self.path("r.npy"), members=members)
        self.assertEqual(told["top_k.values"], {"path": self.path("r.top_k.values.npy"), "type": "float64", "shape": [2, 2]})
        self.assertEqual(told["any"]["type"], "bool")
        empty = self.save("e.npy", np.zeros((0, 3)))
        self.told("reduce", empty, "--with", "sum,max", "--axis", "1")

    def test_names_that_are_no_utf8(self):
        x = os.fsencode(self.save("x.npy", np.ones(3)))
        for name in [b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"a\x80b", b'"\\\x01\x7f',
                     "\u00e4\u20ac\U0001f600".encode()]:
            path = os.fsencode(self.folder) + b"/" + name + b".npy"
            done = subprocess.run([os.fsencode(TOOL), b"softmax", x, b"-o", path, b"--json"], capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.fsencode(json.loads(done.stdout.decode("utf-8"))["output"]["path"]), path)
            self.assertTrue(os.path.exists(path))

    def test_measured_limits(self):
        told = self.told("info", "--measure")
        self.assertLessEqual({told["target"]}, set(told["instruction_sets"]))
        for name in ["read", "copy"]:
            self.assertGreater(told[f"{name}_gigabytes_per_second"], 0.1)
        self.assertGreater(told["multiply_add_gigaflops"], 0.1)


if __name__ == "__main__":
    main()
