"""The Python package on real data: the Pfam mix against the proteins of E. coli, with HMMJIT_TEST_ALL against the MMseqs2
example database, compared with the recorded hmmsearch run, with which the test replay_full compares the program's tables."""
import gzip
import os

import pytest
from common import data_folder, rows

import hmmjit

TABLES = {"tblout": "tbl", "domtblout": "domtbl"}
# Targets, the recorded run, its hits and domains.
TARGETS, RUN, HITS, DOMAINS = ("mmseqs2_db.fasta.gz", "pfammix_mmseqs2db", 7862, 11739) if "HMMJIT_TEST_ALL" in os.environ \
    else ("ecoli_k12_mg1655.faa.gz", "pfammix_ecoli", 1698, 2535)


@pytest.fixture(scope="module")
def inputs():
    data = data_folder()
    return data / "hmm/lib/pfam_mix.hmm.gz", data / "seq" / TARGETS


@pytest.fixture(scope="module")
def found(inputs):
    return hmmjit.search(*inputs, alignments=False)


def test_same_hits_as_the_recorded_run(found):
    for kind, suffix in TABLES.items():
        with gzip.open(data_folder() / f"expected/{RUN}.{suffix}.gz") as file:
            assert rows(found.report(kind)) == rows(file.read())
    # The objects equal the tables.
    assert len(found.table()) == len(rows(found.report("tblout"))) == HITS
    assert len(found.table("domains")) == len(rows(found.report("domtblout"))) == DOMAINS
