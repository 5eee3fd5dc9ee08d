# SPDX-License-Identifier: Apache-2.0
"""What a peer in Python is: a class with one method a verb, `method(work)`, that returns (call, result). call() is what
is timed, result() its output as an array. It raises Cannot where it has no such operation. Where a library lets the
caller give the output, it is given; `note(work)` says where the peer does more or less than we do."""

import pathlib

import numpy as np

import works


class Cannot(Exception):
    pass


class Peer:
    rare = ()  # of what most peers lack, what this one has

    def __init__(self, threads, directory):
        self.threads, self.directory = threads, pathlib.Path(directory)

    def given(self, work, name="x", *shape):
        type = np.int64 if name == "targets" else works.stored_type(work.type)
        return np.fromfile(self.directory / name, type).reshape(shape or work.rows)

    def needs(self, work, *types):
        if work.type not in types:
            raise Cannot(f"no {work.type} here")

    def contiguous(self, work):
        if work.what in ("strided", "in_place", "vectors"):
            raise Cannot("asked for contiguous rows only")

    def prepare(self, work):
        verb = {"decode": "attention"}.get(work.verb, work.verb)
        method = getattr(self, verb, None)
        lacks = {"longest_run", "min_plus", "affine", "fanout", "log_sum_exp_scalar", "window", "paged"} - set(self.rare)
        if not callable(method) or work.what in lacks:
            raise Cannot(f"has no {work.verb}/{work.what}")
        return method(work)

    def math(self, work):
        raise Cannot("not asked: to call it from Python costs as much as so small an array")

    def note(self, work):
        return None
