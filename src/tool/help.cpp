// SPDX-License-Identifier: Apache-2.0
#include "help.hpp"

namespace regroup::tool {
namespace {

const char* const everywhere =
    R"(Options of every command:
  --threads N                 number of threads (default: all), above 1024 as 1024; no bit of a
                              result depends on it
  --device cpu|cuda           cpu (default), or an NVIDIA GPU, with the bits of the CPU: softmax,
                              reduce (not softmax_mean, top_k, histogram), scan, and attention (not
                              of float64, no --split, no --state-out); rows go there in blocks of
                              2^26 numbers, or one row, and attention whole
  --json                      one JSON object on standard output instead of text
  --quiet                     no progress on standard error

)";

const char* const arrays =
    R"(Arrays are .npy files of version 1.0 to 3.0, in C or Fortran order and either byte order: float16,
bfloat16 (the 2-byte void type of ml_dtypes), float32, float64, int32, int64, bool. '-' for an input
reads standard input. Outputs appear whole or not at all; an input may be named as output.
--json prints what share/regroup/output.schema.json says (src/tool/ in the sources). JSON has no NaN
and no infinity: they are NaN, Infinity and -Infinity, as Python's json module writes them.
Exit status: 0 done, 2 wrong command line, 1 any other error (laws: 1 also where a law falls).)";

const char* const softmax =
    R"(X is float16, bfloat16, float32 or float64; integers and bool are refused. The result has X's type,
computed in float32 (float64 for float64). --scale counts in the logsumexp too.
A row that holds NaN or +inf, or only -inf, is NaN throughout; its logsumexp is NaN, inf or -inf.
The logsumexp of an empty row is -inf.

Memory: files are mapped, X and the results. '-' in C order is read into the result's own file and
computed there, along the last axis in blocks of 8 MiB or one row; in Fortran order it is spooled to
a temporary file in TMPDIR. A result that is a pipe, a device or an open descriptor (/dev/stdout) is
held in memory until the end, and a file in the other byte order is copied into memory.

)";

const char* const reduce =
    R"(Monoids, and the type of their results where it is not X's:
  sum, product                of integers in 64 bits, exactly; the result wraps to X's type; a
                              product of floats neither overflows nor underflows on the way
  min, max                    NaN where there is one
  mean                        float64 for integers
  moments                     adds a last axis of 3: count, mean, variance (NumPy's var);
                              float32, float64 for float64 and integers
  log_sum_exp                 natural logarithm; float32, float64 for float64 and integers
  argmin, argmax              int64: the lowest index among equals (-0 equals 0), the first NaN's
                              where there is one; over several axes, in C order within them
  count                       int64: every element, NaN and false too
  any, all                    bool; zero of either sign is false, NaN is true
  top_k:K                     the K largest, largest first, the lowest index first among equals, NaN
                              above +inf; writes R.values.npy and R.indices.npy (int64), K in place
                              of the axis; R.top_k.values.npy and R.top_k.indices.npy beside others
  histogram:LO,HI,BINS        adds a last axis of BINS counts, int64; bins are closed left and open
                              right, the last closed on both sides; outside and NaN are not counted
  softmax_mean                X is (..., n, 1 + d), a score and its d values a row; gives (..., d),
                              the values' mean weighted by softmax of the scores; reduces axis -2,
                              also without --axis; 0 where every score is -inf; floating types only
16-bit floats stay 16-bit, but are added up in float32. bool has any, all and count only.
NaN in, NaN out for sum, product, min, max, mean, moments and log_sum_exp.

Of nothing: sum 0, product 1, log_sum_exp -inf, min +inf and max -inf (for integers the limits of
their type), count 0, any false, all true, histogram 0; the others are errors.

Several monoids take one pass; -o R.npy then writes R.NAME.npy each, NAME without parameters.
Without -o, a line NAME VALUE each: arrays in C order, digits that read back as the same value.

Memory: files are mapped. '-' is reduced as it arrives, in blocks of 8 MiB, where it is in C order
and the reduced axes are the last ones or all (softmax_mean: where no other monoid is beside it, of
up to 255 values a row); otherwise it is spooled to a temporary file in TMPDIR. A file in the other
byte order is copied into memory.

)";

const char* const scan =
    R"(Monoids, and the type of their results where it is not X's:
  sum, product, min, max      integers wrap; 16-bit floats stay 16-bit, but are added up in float32;
                              a product of floats that leaves the range may come back
  log_sum_exp                 natural logarithm; float32, float64 for float64 and integers
  count                       int64: every element, NaN and false too
  any, all                    bool; zero of either sign is false, NaN is true
  affine                      X is (..., n, 2): row i is (a, b), the map x -> a x + b; row i of the
                              result is (A, B) of the maps of rows 0 to i applied in this order, so
                              (A, B) and then (a, b) is (a A, a B + b); any axis but the last;
                              a run of maps that leaves the range makes NaN with an a of 0
bool has any, all and count only. The first k results are the scan of the first k elements, bitwise.
--reverse flips the axis, scans, and flips back: element i combines elements n - 1 down to i.
--exclusive leaves out element i itself; the first is the monoid's answer of nothing: sum 0, product
1, log_sum_exp -inf, min +inf and max -inf (for integers the limits of their type), count 0, any
false, all true, affine (1, 0). NaN in, NaN from there on; any takes it for true, count for one.

Memory: files are mapped, X and the result. '-' in C order is read into the result's own file and
scanned there, in place; in Fortran order it is spooled to a temporary file in TMPDIR. A result that
is a pipe, a device or an open descriptor (/dev/stdout) is held in memory until the end, and a file
in the other byte order is copied into memory.

)";

const char* const attention =
    R"(Q, K and V have one type: float16, bfloat16, float32 or float64; integers and bool are refused. The
result has it too, the logsumexp and the state are float32 (float64 for float64). One input may be
'-', standard input, which is spooled to a temporary file in TMPDIR.
Query head h uses key head h / (H / Hkv). A score is q . k times the scale; then softcap, ALiBi and
a floating mask change it in this order (a finite mask value stays finite as float32: only -inf
hides), and a boolean mask, causal and window hide keys. A hidden key contributes nothing, whatever
it holds; a query that sees no key gets 0 and logsumexp -inf (with a sink: 0 and the sink). NaN in a
query or a visible key stays in the rows that see it. With --kv-lengths, Nk is the entry's length
for causal, window and ALiBi. With --page-table, page p of an entry holds its keys from p times the
page size. --sinks cannot stand beside --state-out, for each state would count the sink. --split
changes bits, within the error bound.

Memory: files are mapped, inputs and results; beside them a tile of scores a thread, never Nq x Nk,
and with --split or --state-out a state: two numbers a query, and the result in float32 or float64.

)";

const char* const merge =
    R"(Combines any number of states, in the order given, of the same queries. The result and the logsumexp
have the states' type: float32, or float64 for states of float64 (so float32 for float16 inputs).
A query that saw no key in any state gets 0 and logsumexp -inf.

Memory: two states, however many there are.

)";

const char* const laws =
    R"(Monoids: sum, product, min, max, count, any, all, argmin, argmax, mean, moments, log_sum_exp,
softmax_mean, top_k, histogram, affine; each over float, with NaN, infinities and both zeros among
the cases. A cell is the worst difference found, in units of the bound computed from the input; '='
is the same bits, '-' a law that no case could ask. The same seed gives the same cases.

)";

const char* const info =
    R"(instruction_sets are those that the processor has, target is the one in use; REGROUP_TARGET in the
environment chooses another (baseline, x86-64-v3, x86-64-v4, x86-64-v4-vnni, x86-64-v4-bf16,
x86-64-v4-amx), with the same bits. gpu is that of --device cuda, or why there is none. --measure
takes a few seconds and 512 MiB; the fastest of at most five runs counts.

)";

}  // namespace

std::string footer_of(const std::string& command) {
  const char* own = "";
  if (command == "softmax") own = softmax;
  if (command == "reduce") own = reduce;
  if (command == "scan") own = scan;
  if (command == "attention") own = attention;
  if (command == "merge") own = merge;
  if (command == "laws") own = laws;
  if (command == "info") own = info;
  return command.empty() ? arrays : std::string(own) + everywhere + arrays;
}

}  // namespace regroup::tool
