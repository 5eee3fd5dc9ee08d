# SPDX-License-Identifier: Apache-2.0
"""Whose bits hold still: the share of output numbers, and of their bits, that change between 1 and 2 threads, between a
row (or head) alone and in its batch, between prefill and one query at a time, between prefill at once and in chunks of
100 queries, and where keys are split in two on request and merged.
"""

import numpy as np

import references
import report
import works

COLUMNS = ("threads", "batch", "query", "chunks", "split")


def changed(a, b, type):
    """(share of numbers, share of bits) in which two results differ; any two NaNs are equal."""
    a, b = (works.narrowed(np.asarray(x).reshape(-1), type) for x in (a, b))
    raw = {2: np.uint16, 4: np.uint32, 8: np.uint64}[a.itemsize]
    both_nan = np.isnan(works.widened(a, type)) & np.isnan(works.widened(b, type))
    apart = np.where(both_nan, raw(0), a.view(raw) ^ b.view(raw))
    bits = np.unpackbits(np.ascontiguousarray(apart).view(np.uint8)).sum()
    return float(np.mean(apart != 0)), float(bits / (8 * apart.nbytes))


def compare(lines, what, type, column, before, after):
    """One column's entry for everybody in both: {who: result}."""
    for who in before.keys() & after.keys():
        numbers, bits = changed(before[who], after[who], type)
        line = lines.setdefault((what, type, who), {"what": what, "type": type, "who": who})
        line[column] = {"numbers": numbers, "bits": bits}


def attention(lines, one, two, type, n, d=64, h=4):
    causal = works.Work("attention", "causal", type, f"h{h}_n{n}_d{d}")
    given = references.inputs(causal)
    q, k, v = (given[name].reshape(h, n, d) for name in "qkv")
    # Ours as it is without options: those that are fastest for many queries, and for one, are others and have other bits.
    plain = lambda results: results | {"ours": y for who, y in results.items() if who == "ours, in full"}
    heads = lambda results, rows: {who: np.asarray(y).reshape(-1, rows, d) for who, y in plain(results).items()}
    whole = heads(one.gather(causal, given), n)
    put = lambda column, before, after: compare(lines, "attention", type, column, before, after)
    at = lambda rows: {who: y[:, rows] for who, y in whole.items()}
    put("threads", whole, heads(two.gather(causal, given), n))
    alone = works.Work("attention", "causal", type, f"h1_n{n}_d{d}")
    put(
        "batch",
        {who: y[:1] for who, y in whole.items()},
        heads(one.gather(alone, {"q": q[:1], "k": k[:1], "v": v[:1]}), n),
    )
    by_query = []
    for i in references.sampled_queries(causal)[1:]:
        decode = works.Work("decode", "full", type, f"h{h}_n{i + 1}_d{d}")
        by_query.append(
            (i, heads(one.gather(decode, {"q": q[:, i : i + 1], "k": k[:, : i + 1], "v": v[:, : i + 1]}), 1))
        )
    positions = [i for i, _ in by_query]
    joined = {
        who: np.concatenate([r[who] for _, r in by_query], axis=1)
        for who in whole
        if all(who in r for _, r in by_query)
    }
    put("query", at(positions), joined)
    chunks = []
    for first in range(0, n, 100):
        last = min(first + 100, n)
        chunk = works.Work("attention", "causal", type, f"h{h}_n{last}_q{last - first}_d{d}")
        chunks.append(
            heads(one.gather(chunk, {"q": q[:, first:last], "k": k[:, :last], "v": v[:, :last]}), last - first)
        )
    put(
        "chunks",
        whole,
        {who: np.concatenate([c[who] for c in chunks], axis=1) for who in whole if all(who in c for c in chunks)},
    )
    split = one.gather(works.Work("decode", "full", type, f"h{h}_n{n}_d{d}"), {"q": q[:, :1], "k": k, "v": v})
    if "ours, keys split in 2" in split:
        put("split", {"ours": split["ours"]}, {"ours": split["ours, keys split in 2"]})


def of_rows(lines, one, two, name):
    """A work over rows: threads, and its first row alone."""
    work = works.Work.named(name)
    given, what = references.inputs(work), f"{work.verb}/{work.what}"
    whole = one.gather(work, given)
    compare(lines, what, work.type, "threads", whole, two.gather(work, given))
    rows, columns = work.rows
    if rows > 1:
        first = one.gather(works.Work(work.verb, work.what, work.type, f"1x{columns}"), {"x": given["x"][:columns]})
        each = lambda y: np.asarray(y).reshape(rows, -1)[0]
        compare(lines, what, work.type, "batch", {who: each(y) for who, y in whole.items()}, first)


def table(one, two, quick):
    """The lines of the table, from a session of one thread and one of two."""
    lines = {}
    for type in ("fp32", "bf16", "fp16"):
        attention(lines, one, two, type, 200 if quick else 1000)
    n = "64K" if quick else "4M"
    for name in (
        f"reduce/plus/fp32/{n}",
        f"reduce/log_sum_exp/fp32/{n}",
        f"scan/plus/fp32/{n}",
        "softmax/rows/fp32/64x5000",
        "logsumexp/rows/fp32/64x5000",
        "softmax/rows/fp32/1x1M",
    ):
        of_rows(lines, one, two, name)
    shown = lambda who: who == "ours" or (
        report.is_peer(who) and not who.endswith(("-march=native", "textbook operator"))
    )
    kept = [line for line in lines.values() if shown(line["who"])]
    return sorted(kept, key=lambda line: (line["what"], line["type"], line["who"] != "ours", line["who"]))


def lines_of(table):
    yield f"{'share of numbers (of bits) that change':58}" + "".join(f"{c:>16}" for c in COLUMNS)
    shown = lambda share: (
        "-" if share is None else "none" if share["numbers"] == 0 else f"{share['numbers']:.1%} ({share['bits']:.1%})"
    )
    for line in table:
        yield f"{line['what']:22} {line['type']:5} {line['who']:30}" + "".join(
            f"{shown(line.get(c)):>16}" for c in COLUMNS
        )


def markdown(table):
    if not table:
        return
    yield "Share of numbers (of their bits) that change; empty: not offered, or not asked."
    yield ""
    yield "| what | type | who | " + " | ".join(COLUMNS) + " |"
    yield "|---" * (3 + len(COLUMNS)) + "|"
    shown = lambda share: (
        "" if share is None else "none" if share["numbers"] == 0 else f"{share['numbers']:.2%} ({share['bits']:.2%})"
    )
    for line in table:
        yield f"| {line['what']} | {line['type']} | {line['who']} | " + " | ".join(
            shown(line.get(c)) for c in COLUMNS
        ) + " |"
