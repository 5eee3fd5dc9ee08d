# SPDX-License-Identifier: Apache-2.0
"""Softmax of one row a program, in Triton: the peer of our row kernels."""

import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, columns, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    row = tl.load(x + first + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    weights = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + first + at, weights / tl.sum(weights, axis=0), mask=at < columns)
