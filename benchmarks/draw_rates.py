#!/usr/bin/env python3
"""Draws docs/images/rates.svg from the table of docs/performance.md.

    benchmarks/draw_rates.py >docs/images/rates.svg
"""
import os
import re
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADING = "349 Pfam models against 31.2 M residues, 16 cores, seconds"
# Prefixes of the rows, and their labels.
ROWS = (("hmmsearch 3.3.2", "hmmsearch 3.3.2"), ("hmmjit, CPU only", "hmmjit, CPU"),
        ("hmmjit, GPU, empty", "hmmjit, one H100, cold"), ("hmmjit, GPU, warm", "hmmjit, one H100"))


def seconds_of_rows():
    with open(os.path.join(ROOT, "docs", "performance.md")) as file:
        table = file.read().split("| program | wall, s | times hmmsearch |", 1)[1]
    found = dict(re.findall(r"^\| (.+?) \| ([0-9.]+) \| [0-9.]+ \|$", table.split("\n\n", 1)[0], re.MULTILINE))
    out = []
    for beginning, label in ROWS:
        (seconds,) = (text for row, text in found.items() if row.startswith(beginning))
        out.append((label, seconds))
    return out


def svg(rows):
    left, widest, step = 170, 400, 32
    height = 34 + step * len(rows) + 6
    most = max(float(seconds) for _, seconds in rows)
    told = ", ".join(f"{label} {seconds} s" for label, seconds in rows)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" font-family="system-ui, sans-serif" '
             f'font-size="13" role="img" aria-label="{escape(HEADING)}: {escape(told)}">',
             f'<rect width="640" height="{height}" fill="#fff"/>', '<g fill="#222">',
             f'<text x="10" y="22" font-weight="600">{escape(HEADING)}</text>']
    bars = []
    for i, (label, seconds) in enumerate(rows):
        top, width = 34 + step * i, max(1.0, float(seconds) / most * widest)
        lines.append(f'<text x="{left - 10}" y="{top + 16}" text-anchor="end">{escape(label)}</text>')
        lines.append(f'<text x="{left + width + 8:.1f}" y="{top + 16}">{seconds}</text>')
        colour = "#b9c7d8" if label.startswith("hmmsearch") else "#1b62b5"
        bars.append(f'<rect x="{left}" y="{top}" width="{width:.1f}" height="22" fill="{colour}"/>')
    return "\n".join(lines + ["</g>"] + bars + ["</svg>"]) + "\n"


if __name__ == "__main__":
    print(svg(seconds_of_rows()), end="")
