#!/usr/bin/env python3
"""examples/score_distribution with results that searches seldom give, played by a module of the
same name: no hits, equal scores, a single hit by chance; as SVG, and as PNG where matplotlib is installed.

usage: score_distribution_test.py SCRIPT
"""
import importlib.util
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

RESULTS = """
class Hit:
    def __init__(self, score, e_value): self.score, self.e_value = score, e_value
class Result:
    name = "played"
    def __init__(self): self.reported = [Hit(s, e) for s, e in HITS]
class Results(list):
    statistics = {"targets": 100}
    def table(self): return {"score": [h.score for r in self for h in r.reported]}
def search(*arguments, **options): return Results([Result()])
"""
CASES = {
    "no hits": [],
    "equal whole scores": [(25.0, 1e-5), (25.0, 1e-5)],
    "one hit by chance": [(3.5, 2.0)],
    "negative scores": [(-3.25, 40.0), (-2.0, 9.0), (12.5, 1e-3)],
    "E-value of zero": [(900.0, 0.0), (20.0, 1e-4)],
}


def main():
    script = sys.argv[1]
    endings = ("svg", "png") if importlib.util.find_spec("matplotlib") else ("svg",)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for what, hits in CASES.items():
            with open(os.path.join(folder, "hmmjit.py"), "w") as file:
                file.write(f"HITS = {hits!r}\n{RESULTS}")
            for ending in endings:
                figure = os.path.join(folder, f"{what}.{ending}".replace(" ", "_"))
                done = subprocess.run([sys.executable, "-B", script, "models", "targets", figure], text=True,
                                      capture_output=True, env=dict(os.environ, PYTHONPATH=folder))
                problem = done.stderr if done.returncode else None
                if not problem and os.path.exists(figure) != bool(hits):
                    problem = "a figure of nothing" if not hits else "no figure"
                elif not problem and hits and ending == "svg":
                    drawn = xml.dom.minidom.parse(figure)
                    if len(drawn.getElementsByTagName("circle")) != len(hits):
                        problem = "not one dot for each hit"
                elif not problem and hits and not open(figure, "rb").read().startswith(b"\x89PNG"):
                    problem = "not a PNG file"
                if problem:
                    failures += 1
                    print(f"{what}, {ending}: {problem}")
    print(f"{len(endings) * len(CASES)} figures, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
