#!/usr/bin/env python3
"""Distribution of profile HMM scores over a database, as a figure.

usage: score_distribution.py PROFILES SEQUENCES FIGURE.svg|FIGURE.png
"""
# %% Inputs
import math
import sys
from typing import Tuple

import hmmjit

if len(sys.argv) != 4:
    sys.exit(__doc__)
models, targets, figure = sys.argv[1:]

# %% Search without filters and thresholds: every target with a domain gets a score
results = hmmjit.search(models, targets, max=True, E=1e9, alignments=False)
table = results.table()
targets_searched = results.statistics["targets"]
for result in results:
    print(f"{result.name}: {len(result.reported)} of {targets_searched} targets scored, "
          f"{len([h for h in result.reported if h.e_value < 1e-3])} below E = 0.001")

# %% Histogram of the scores in bins of one bit
scores = [float(s) for s in table["score"]]
if not scores:
    print("no target has a score: no figure")
    sys.exit()
low, high = math.floor(min(scores)), math.floor(max(scores)) + 1  # at least one bin
bins = [0] * (high - low)
for score in scores:
    bins[math.floor(score) - low] += 1

# %% Calibration: with good E-values, the n-th best chance hit has an E-value of about n
calibration = [(rank, max(float(hit.e_value), 1e-12))
               for result in results for rank, hit in enumerate(result.reported, 1)]


# %% Drawing
def svg(width: int = 900, height: int = 380) -> str:
    """Both figures side by side, as text."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']

    def frame(x: int, title: str, bottom: str, left: str) -> None:
        parts.append(f'<rect x="{x}" y="40" width="360" height="280" fill="none" stroke="#444"/>'
                     f'<text x="{x + 180}" y="25" text-anchor="middle" font-size="14">{title}</text>'
                     f'<text x="{x + 180}" y="355" text-anchor="middle">{bottom}</text>'
                     f'<text transform="translate({x - 38},180) rotate(-90)" text-anchor="middle">{left}</text>')

    def tick(x: float, y: float, text: object, anchor: str) -> None:
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#444">{text}</text>')

    frame(70, "Scores", "score, bits", "targets (log)")
    top = math.log10(max(bins) + 1)
    step = 360 / len(bins)
    for i, count in enumerate(bins):
        tall = 280 * math.log10(count + 1) / top
        parts.append(f'<rect x="{70 + i * step:.2f}" y="{320 - tall:.2f}" width="{max(step - 0.5, 0.5):.2f}" '
                     f'height="{tall:.2f}" fill="#3b6ea5"/>')
    for value in (low, (low + high) // 2, high):
        tick(70 + 360 * (value - low) / (high - low), 335, value, "middle")
    tick(66, 50, max(bins), "end")

    frame(520, "Calibration", "rank among the hits of its profile", "E-value")
    last = math.log10(max(rank for rank, _ in calibration) + 1)
    lowest = min(0.0, math.log10(min(e for _, e in calibration)))  # the line's first point is in
    highest = max(last, math.log10(max(e for _, e in calibration)))

    def place(rank: float, e_value: float) -> Tuple[float, float]:
        return (520 + 360 * math.log10(rank) / last,
                320 - 280 * (math.log10(e_value) - lowest) / (highest - lowest))

    for rank, e_value in calibration:
        x, y = place(rank, e_value)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="#c0392b" fill-opacity="0.6"/>')
    (x1, y1), (x2, y2) = place(1, 1), place(10 ** last, 10 ** last)
    parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#444" '
                 'stroke-dasharray="4 3"/>')
    tick(516, 50, f"1e{highest:.0f}", "end")
    tick(516, 320, f"1e{lowest:.0f}", "end")
    return "\n".join(parts + ["</svg>", ""])


def with_matplotlib() -> None:
    import matplotlib  # type: ignore[import-not-found,unused-ignore]
    matplotlib.use("Agg")
    from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]
    _, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    left.bar([low + i + 0.5 for i in range(len(bins))], bins, width=1)
    left.set(title="Scores", xlabel="score, bits", ylabel="targets", yscale="log")
    right.loglog(*zip(*calibration), ".")
    right.loglog([1, len(calibration)], [1, len(calibration)], "--", color="0.3")
    right.set(title="Calibration", xlabel="rank among the hits of its profile", ylabel="E-value")
    pyplot.savefig(figure)


# %% Figure
if figure.endswith(".svg"):
    with open(figure, "w", encoding="ascii") as file:
        file.write(svg())
else:
    with_matplotlib()
print("figure:", figure)
