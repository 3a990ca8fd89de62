"""The Python package on real data: the Pfam mix against the MMseqs2 example database, compared with
the recorded hmmsearch run. Minutes of CPU time."""
import gzip
import os
import pathlib

import pytest

import hmmjit


def shared_folder():
    source = pathlib.Path(__file__).resolve().parents[2]
    for folder in (os.environ.get("HMMJIT_SHARED"), source.parent / "shared", source.parent.parent / "shared"):
        if folder and pathlib.Path(folder).is_dir():
            return pathlib.Path(folder)
    pytest.skip("shared reference data not found: set HMMJIT_SHARED")


def rows(table):
    return [line for line in table.splitlines() if not line.startswith(b"#")]


def test_pfam_mix_against_mmseqs2_database():
    data = shared_folder() / "data"
    found = hmmjit.search(data / "hmm/lib/pfam_mix.hmm.gz", data / "seq/mmseqs2_db.fasta.gz", alignments=False)
    for kind, suffix in (("tblout", "tbl"), ("domtblout", "domtbl")):
        expected = gzip.open(data / f"expected/pfammix_mmseqs2db.{suffix}.gz").read()
        assert rows(found.report(kind)) == rows(expected)
    # The objects say the same as the tables.
    assert len(found.table()) == len(rows(found.report("tblout"))) == 7862
    assert len(found.table("domains")) == len(rows(found.report("domtblout"))) == 11739
