"""A page of bars from what `scripts/bench --json` has written: ratios to libtorch, not times, since those differ between machines."""
import html
import json
import math

LEAST, MOST = 0.25, 64     # the ends of the axis
LABEL, WIDTH, ROW = 330, 380, 22


def page(file):
    cases = [c for c in json.loads(file.read_text(encoding="utf-8")) if c["peer"]]
    if not cases:
        raise SystemExit(f"docs: {file} has no case that libtorch has, too")
    ratios = [c["speedup_tuned"] or c["speedup"] for c in cases]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    out = ["# Beside libtorch\n",
           f"How many times faster than libtorch, or smaller, tapedeck is in {len(cases)} cases on one thread: {mean:.1f} in the geometric mean beside the tuned libtorch. "
           "The filled bar is beside libtorch as tuned by an expert, the line beside libtorch as installed. [Performance](reference/performance.md) says what is measured and how; "
           "`scripts/bench --json` measures it anew.\n"]
    for suite in dict.fromkeys(c["suite"] for c in cases):
        out.append(f"## {suite}\n\n```{{raw}} html\n{chart([c for c in cases if c['suite'] == suite], suite)}\n```\n")
    return "\n".join(out)


def position(ratio):
    part = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return LABEL + part * WIDTH


def chart(cases, suite):
    height = ROW * len(cases) + 30
    out = [f'<div class="figure"><svg viewBox="0 0 {LABEL + WIDTH + 70} {height}" role="img" aria-label="{html.escape(suite)}: ratios to libtorch">']
    for tick in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64):
        x = position(tick)
        out.append(f'<line class="{"one" if tick == 1 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 22}"/>'
                   f'<text class="tick" x="{x:.1f}" y="{height - 6}">{tick:g}×</text>')
    for n, c in enumerate(cases):
        y, tuned, plain = n * ROW + 3, c["speedup_tuned"] or c["speedup"], c["speedup"]
        left, right = sorted((position(1), position(tuned)))
        name = f'{c["case"]} {c["size"]}'
        out.append(f'<g><title>{html.escape(name)}: {tuned:.2f}× tuned, {plain:.2f}× as installed</title>'
                   f'<text class="name" x="{LABEL - 8}" y="{y + 13}">{html.escape(name)}</text>'
                   f'<rect class="{"ahead" if tuned >= 1 else "behind"}" x="{left:.1f}" y="{y}" width="{max(right - left, 1):.1f}" height="{ROW - 8}"/>'
                   f'<line class="plain" x1="{position(plain):.1f}" x2="{position(plain):.1f}" y1="{y - 1}" y2="{y + ROW - 7}"/>'
                   f'<text class="value" x="{max(right, position(plain)) + 6:.1f}" y="{y + 13}">{tuned:.2g}×</text></g>')
    out.append("</svg></div>")
    return "\n".join(out)
