"""Inputs and helpers of these tests. run_pytest.py sets the paths."""
import os
import pathlib

import pytest

INPUTS = os.environ["HMMJIT_TEST_INPUTS"]
PROGRAM = os.environ["HMMJIT_TEST_PROGRAM"]
MODELS, TARGETS = os.path.join(INPUTS, "models.hmm"), os.path.join(INPUTS, "targets.fasta")


def data_folder():
    source = pathlib.Path(__file__).resolve().parents[2]
    for folder in (os.environ.get("HMMJIT_SHARED"), source.parent / "shared", source.parent.parent / "shared"):
        if folder and (pathlib.Path(folder) / "data").is_dir():
            return pathlib.Path(folder) / "data"
    pytest.skip("SKIPPED, NOTHING COMPARED: shared reference data not found: set HMMJIT_SHARED")


def rows(table):
    """Lines of a table without its comments."""
    return [line for line in table.splitlines() if not line.startswith(b"#")]


def key(results):
    return [(r.name, h.name, h.e_value, h.score, [(d.score, d.alignment.sequence) for d in h.domains])
            for r in results for h in r]
