"""The Python package on real data: the Pfam mix against the MMseqs2 example database, compared with
the recorded hmmsearch run, with which the test replay_full compares the program's tables if HMMJIT_TEST_ALL is set."""
import gzip
import os
import pathlib

import pytest

import hmmjit

TABLES = {"tblout": "tbl", "domtblout": "domtbl"}


def data_folder():
    source = pathlib.Path(__file__).resolve().parents[2]
    for folder in (os.environ.get("HMMJIT_SHARED"), source.parent / "shared", source.parent.parent / "shared"):
        if folder and (pathlib.Path(folder) / "data").is_dir():
            return pathlib.Path(folder) / "data"
    pytest.skip("SKIPPED, NOTHING COMPARED: shared reference data not found: set HMMJIT_SHARED")


def rows(table):
    return [line for line in table.splitlines() if not line.startswith(b"#")]


@pytest.fixture(scope="module")
def inputs():
    data = data_folder()
    return data / "hmm/lib/pfam_mix.hmm.gz", data / "seq/mmseqs2_db.fasta.gz"


@pytest.fixture(scope="module")
def found(inputs):
    return hmmjit.search(*inputs, alignments=False)


def test_same_hits_as_the_recorded_run(found):
    for kind, suffix in TABLES.items():
        with gzip.open(data_folder() / f"expected/pfammix_mmseqs2db.{suffix}.gz") as file:
            assert rows(found.report(kind)) == rows(file.read())
    # The objects equal the tables.
    assert len(found.table()) == len(rows(found.report("tblout"))) == 7862
    assert len(found.table("domains")) == len(rows(found.report("domtblout"))) == 11739
