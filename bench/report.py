# SPDX-License-Identifier: Apache-2.0
"""From samples to records, the table and the picture.

Samples of one work on so many threads are {who: [figure, ...]}, one figure a round, higher is better. Ours is `ours`;
other ways of ours (a split, another operator in our loop) and the loops by hand stand apart from the peers.
"""

import math
import re
import statistics
from xml.sax.saxutils import escape

FIELDS = (
    "work",
    "threads",
    "ours",
    "unit",
    "limit",
    "limit_name",
    "fraction_of_limit",
    "peers",
    "best_peer",
    "ratio_to_best_peer",
    "also",
    "error",
    "peer_errors",
    "spread",
    "notes",
    "absent",
    "busy",
)
WRONG = 0.05  # a peer whose worst relative error is larger, and this much larger than ours, is shown and not ranked
SHOWN = 16  # contenders a work on the terminal
FAR_BEHIND = 4  # times slower than ours
NOISY = 0.15  # a spread beyond which a figure is marked


def is_peer(who):
    return not (who.startswith("our") or who.startswith("by hand"))


def spread(figures):
    """(largest - smallest) over the median: 0 for one round."""
    return (max(figures) - min(figures)) / statistics.median(figures)


def far_behind(samples):
    """The peers of whom one round has said enough."""
    ours = samples.get("ours", [0])[0]
    return {who for who, figures in samples.items() if is_peer(who) and ours > FAR_BEHIND * figures[0]}


def record(work, threads, unit, samples, limits, errors, notes, absent, busy):
    """One record; `limits` is [(name, figure), ...], one a round, `busy` the share of the machine others used."""
    medians = {who: statistics.median(figures) for who, figures in samples.items()}
    return ranked({
        "work": work,
        "threads": threads,
        "ours": medians.get("ours"),
        "unit": unit,
        "limit": statistics.median(figure for _, figure in limits) if limits else None,
        "limit_name": limits[0][0] if limits else None,
        "fraction_of_limit": None,
        "peers": {who: figure for who, figure in medians.items() if is_peer(who)},
        "best_peer": None,
        "ratio_to_best_peer": None,
        "also": {who: figure for who, figure in medians.items() if who != "ours" and not is_peer(who)},
        "error": errors.get("ours"),
        "peer_errors": {who: e for who, e in errors.items() if who != "ours" and who in medians},
        "spread": {who: spread(figures) for who, figures in samples.items()},
        "notes": notes,
        "absent": absent,
        "busy": busy,
    })


def ranked(r):
    """The record with what follows from its figures and errors: who is wrong, who is best, and our ratios."""
    ours, errors = r["ours"], r["peer_errors"]
    wrong = {who for who in r["peers"] if errors.get(who, 0) > max(WRONG, (1 + WRONG) * (r["error"] or 0))}
    notes = {who: re.sub(r"(; |^)wrong by \S+, not ranked$", "", note) for who, note in r["notes"].items()}
    for who in wrong:
        notes[who] = "; ".join(filter(None, [notes.get(who), f"wrong by {errors[who]:.0%}, not ranked"]))
    right = {who: f for who, f in r["peers"].items() if who not in wrong}
    best = max(right, key=right.get, default=None)
    return r | {
        "fraction_of_limit": ours / r["limit"] if ours and r["limit"] else None,
        "best_peer": best,
        "ratio_to_best_peer": ours / right[best] if ours and best else None,
        "notes": {who: note for who, note in notes.items() if note},
    }


def figure(x, form="{:.3g}"):
    return "-" if x is None else form.format(x)


def named(r, one="{} thread", more="{} threads"):
    """A work and its number of threads; on a GPU there is none to say."""
    threads = r["threads"]
    return r["work"] if threads is None else f"{r['work']}, " + (more if threads > 1 else one).format(threads)


def lines_of(r):
    """A record as text: ours, then everybody in order of speed."""
    noisy = r["spread"].get("ours", 0) > NOISY
    head = named(r)
    limit = (
        "no limit"
        if r["limit"] is None
        else f"{r['fraction_of_limit'] or math.nan:.2f} of {r['limit_name']}, {r['limit']:.4g}"
    )
    yield (
        f"{head:52} ours {figure(r['ours'], '{:.4g}')} {r['unit']} +-{r['spread'].get('ours', 0) / 2:.0%}"
        f"{' NOISY' if noisy else ''}, {limit}; error {figure(r['error'], '{:.1e}')}"
    )
    everybody = [(f, who) for who, f in {**r["peers"], **r["also"]}.items()]
    for f, who in sorted(everybody, reverse=True)[:SHOWN]:
        ratio = f"{r['ours'] / f:7.2f}x" if r["ours"] else "       -"
        note = f"   ({r['notes'][who]})" if who in r["notes"] else ""
        yield (
            f"  {ratio} {f:10.4g}  {who:36} error {figure(r['peer_errors'].get(who), '{:.1e}')}"
            f"  +-{r['spread'].get(who, 0) / 2:.0%}{note}"
        )
    if len(everybody) > SHOWN:
        yield f"         and {len(everybody) - SHOWN} slower ones, in --json"
    for who, why in r["absent"].items():
        yield f"         -          -  {who:36} {why}"
    if r["busy"] and r["busy"] > 0.05:
        yield f"  BUSY: other programs used {r['busy']:.0%} of the machine meanwhile"


def heading(result):
    """What a table is of."""
    machine = result["machine"]
    cores = f"{machine['cores']} cores, " if "cores" in machine else ""
    target = f"target {machine['target']}, " if "target" in machine else ""
    pages = "pages of 4 KiB, " if machine.get("small_pages") else ""
    yield f"{machine['processor']}, {cores}{target}{pages}{machine['date']}, commit {machine.get('commit')}."
    if result["limits"]:
        shown = lambda by_threads: " / ".join(f"{f:.4g}" for f in by_threads.values())
        yield "Limits, by threads: " + "; ".join(f"{name} {shown(f)}" for name, f in result["limits"].items()) + "."
    yield ""


def markdown(records):
    """The table of bench/results: one row a work and number of threads."""
    if not records:
        return
    yield "| work | threads | ours | of the limit | beside the best peer | error | most accurate peer | by hand |"
    yield "|---|---|---|---|---|---|---|---|"
    for r in records:
        best = "" if r["ratio_to_best_peer"] is None else f"{r['ratio_to_best_peer']:.2f}x {r['best_peer']}"
        limit = (
            ""
            if r["fraction_of_limit"] is None
            else f"{r['fraction_of_limit']:.2f} of {r['limit']:.4g} ({r['limit_name']})"
        )
        hand = r["also"].get("by hand")
        by_hand = "" if not hand or not r["ours"] else f"{r['ours'] / hand:.2f}x"
        mark = " (noisy)" if r["spread"].get("ours", 0) > NOISY or (r["busy"] or 0) > 0.05 else ""
        yield (
            f"| {r['work']} | {r['threads'] or ''} | {figure(r['ours'], '{:.4g}')} {r['unit']}{mark} | {limit} | {best} "
            f"| {figure(r['error'], '{:.1e}')} | {most_accurate(r)} | {by_hand} |"
        )


def most_accurate(r):
    """The peer with the smallest error, of several the fastest; in bold where it is smaller than ours."""
    errors = {who: e for who, e in r["peer_errors"].items() if who in r["peers"]}
    if not errors:
        return ""
    who = min(errors, key=lambda who: (errors[who], -r["peers"][who]))
    shown = f"{errors[who]:.1e}"
    return f"**{shown}** {who}" if errors[who] < (r["error"] or 0) else f"{shown} {who}"


CORNERS = (", textbook operator", ", our operator", "our loop, textbook operator", "ours", ", two calls")


def two_by_two(records):
    """{The textbook's operator on libm, ours} x {their loops, ours}, and two calls instead: the best of each, by flags."""
    rows = []
    for r in records:
        by_flags = {}
        for who, f in ({"ours": r["ours"] or 0} | r["peers"] | r["also"]).items():
            name, _, flags = who.partition(", -")
            for corner in CORNERS:
                if name == corner or (is_peer(who) and name.endswith(corner)):
                    best = by_flags.setdefault("-O3" if not flags else "-" + flags, {})
                    best[corner] = max(best.get(corner, (0, "")), (f, name.removesuffix(corner)))
        for flags, best in by_flags.items() if r["work"].startswith("reduce/log_sum_exp") else ():
            cells = ("{:.4g} {}".format(*best[corner]).strip() if corner in best else "" for corner in CORNERS)
            rows.append(" | ".join((f"| {r['work']}", str(r["threads"] or ""), flags, *cells)) + " |")
    if rows:
        headings = "libm, their loop", "ours, their loop", "libm, our loop", "ours, our loop", "two calls"
        yield " | ".join(("| work", "threads", "flags", *headings)) + " |"
        yield "|---|---|---|---|---|---|---|---|"
        yield from rows


PALETTE = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c", "#ccb974", "#64b5cd")


def family_of(who):
    """A library, whatever it was given: one colour each."""
    return who.split(",")[0].split(" (")[0]


def plot(records, title):
    """An SVG: a line a record, from 0 to the machine's limit; ours a bar, the best of each library a dot."""
    shown = [r for r in records if r["ours"] and r["limit"]]
    left, width, step, top = 330, 560, 22, 58
    names = sorted({who for r in shown for who in r["peers"]})
    families = list(dict.fromkeys(family_of(who) for who in names))
    colour = {family: PALETTE[i % len(PALETTE)] for i, family in enumerate(families)}
    legend = math.ceil((len(families) + 1) / 6)
    height = top + step * (len(shown) + 1) + 18 * legend + 20
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{height}" '
        f'font-family="sans-serif" font-size="12">'
    )
    yield f'<rect width="100%" height="100%" fill="white"/><text x="10" y="20" font-size="14">{escape(title)}</text>'
    yield f'<text x="{left}" y="40" fill="#555">fraction of the machine\'s limit, measured in the same run</text>'
    bottom = top + step * len(shown)
    for tenth in range(0, 11, 2):
        x = left + width * tenth / 10
        yield f'<line x1="{x}" y1="{top - 6}" x2="{x}" y2="{bottom}" stroke="#ddd"/>'
        yield f'<text x="{x}" y="{bottom + 14}" text-anchor="middle" fill="#555">{tenth / 10:g}</text>'
    for i, r in enumerate(shown):
        y = top + step * i
        scaled = lambda f: left + width * min(f / r["limit"], 1.08)
        yield f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{escape(named(r, "{}T", "{}T"))}</text>'
        yield (
            f'<rect x="{left}" y="{y + 2}" width="{scaled(r["ours"]) - left:.1f}" height="{step - 8}" fill="#333">'
            f'<title>ours: {r["ours"]:.4g} {r["unit"]}</title></rect>'
        )
        best = {}  # of each family
        for who, f in sorted(r["peers"].items(), key=lambda peer: peer[1]):
            best[family_of(who)] = (who, f)
        for family, (who, f) in best.items():
            yield (
                f'<circle cx="{scaled(f):.1f}" cy="{y + step / 2 - 2}" r="4.5" fill="{colour[family]}" stroke="white">'
                f'<title>{escape(who)}: {f:.4g} {r["unit"]}</title></circle>'
            )
    for i, family in enumerate(["ours"] + families):
        x, y = 10 + (i % 6) * 155, bottom + 36 + 18 * (i // 6)
        fill = "#333" if family == "ours" else colour[family]
        yield f'<circle cx="{x + 5}" cy="{y - 4}" r="5" fill="{fill}"/>'
        yield f'<text x="{x + 15}" y="{y}">{escape(family)}</text>'
    yield "</svg>"
