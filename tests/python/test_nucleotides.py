"""Nucleotides in the Python package, compared with the program, and with PyHMMER where it is installed."""
import ctypes
import gzip
import io
import os
import pickle
import random
import subprocess
import threading

import pytest
from common import PROGRAM, data_folder, rows

import hmmjit

GENOME = "".join("ACGT"[(i * i * 7 + i // 3) % 4] for i in range(3000))
FAMILY = "".join("ACGT"[(i * 31 + i * i) % 4] for i in range(120)) + "GATTACAGGCCTTAACGGT" * 3


def complement(text):
    return text[::-1].translate(str.maketrans("ACGT", "TGCA"))


@pytest.fixture(scope="module")
def chromosome():
    return GENOME + FAMILY + GENOME[:500] + complement(FAMILY) + GENOME[::-1]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An alignment, one of a single row, a genome with relatives of them, and a model."""
    rng = random.Random(5)
    folder = tmp_path_factory.mktemp("nucleotides")

    def relative(change):
        return "".join(rng.choice("ACGT") if rng.random() < change else c for c in FAMILY if rng.random() < 1 - change / 5)

    def noise(length):
        return "".join(rng.choices("ACGT", k=length))

    family = [(f"r{n}", "".join(rng.choice("ACGT-") if rng.random() < 0.2 else c for c in FAMILY)
               + (noise(12) if n < 2 else "-" * 12) + "GATTACA") for n in range(8)]
    for name, aligned in (("family", family), ("one", family[:1])):
        (folder / f"{name}.sto").write_text(f"# STOCKHOLM 1.0\n#=GF ID {name}\n#=GF AC DF1\n#=GF GA 40;\n#=GF TC 90;\n"
                                            "#=GF NC 20;\n" + "".join(f"{n} {r}\n" for n, r in aligned) + "//\n")
    genome = "".join(noise(1500) + turn(relative(n / 40)) for n in range(24) for turn in (str, complement))
    (folder / "genome.fa").write_text(f">chr1 of a test\n{genome + noise(60000)}\n>chr2\n{relative(0.1) + noise(3000)}\n")
    hmmjit.Builder("dna").build_msa(folder / "family.sto").write(folder / "family.hmm")
    return folder


SEARCHES = [("", {}, {}), ("-E 1e-9", {"E": 1e-9}, {}), ("-T 30", {"T": 30}, {}), ("--incE 1e-20", {"incE": 1e-20}, {}),
            ("--incT 60", {"incT": 60}, {}), ("--F1 1e-5", {"F1": 1e-5}, {}), ("--F2 1e-9", {"F2": 1e-9}, {}),
            ("--F3 1e-15", {"F3": 1e-15}, {}),
            ("--F3 0.1 --B1 20 --B2 30 --B3 50", {"F3": 0.1, "B1": 20, "B2": 30, "B3": 50}, {}), ("-Z 3", {"Z": 3}, {}),
            ("--seed 7", {"seed": 7}, {}), ("--w_length 60", {"window_length": 60}, {}), ("--w_beta 0.5", {"window_beta": 0.5}, {}),
            ("--block_length 50000", {"block_length": 50000}, {}),
            ("--max", {"max": True}, {}), ("--nobias", {"bias_filter": False}, {}), ("--nonull2", {"null2": False}, {}),
            ("--watson", {"strand": "watson"}, {}), ("--crick", {"strand": "crick"}, {}), ("--cut_ga", {"cutoffs": "ga"}, {}),
            ("--cut_nc", {"cutoffs": "nc"}, {}), ("--cut_tc", {"cutoffs": "tc"}, {}), ("--noali", {}, {"alignments": False}),
            ("--acc", {}, {"prefer_accession": True}), ("--notextw", {}, {"text_width": 0}),
            ("--textw 200", {}, {"text_width": 200})]
MODELS = [("", {}), ("--rna", {"alphabet": "rna"}), ("--symfrac 0.95", {"symfrac": 0.95}), ("--eset 3", {"effective_number": 3}),
          ("--eclust", {"effective_number": "clust"}), ("--wgsc", {"weighting": "gsc"}), ("--plaplace", {"prior": "laplace"}),
          ("--maxinsertlen 5", {"max_insertions": 5}), ("--w_length 333", {"window_length": 333}),
          ("--w_beta 0.01", {"window_beta": 0.01}), ("--seed 9", {"seed": 9}),
          ("--singlemx --popen 0.05 --pextend 0.6", {"single_by_matrix": True, "popen": 0.05, "pextend": 0.6})]


def results_part(text):
    return [line for line in text[text.index(b"Query:"):].splitlines() if line and not line.startswith(b"#")]


def without_author(text):
    return [line for line in text.splitlines() if not line.startswith(b"#=GF AU")]


def test_searches(files):
    seen = set()
    for arguments, search, shown in SEARCHES:
        outputs = [files / name for name in ("out", "tbl", "dfam", "sto")]
        subprocess.run([PROGRAM, "nhmmer", "--quiet", *arguments.split(), "-o", outputs[0], "--tblout", outputs[1],
                        "--dfamtblout", outputs[2], "-A", outputs[3], files / "family.hmm", files / "genome.fa"], check=True)
        main, table, dfam, alignment = (path.read_bytes() for path in outputs)
        found = hmmjit.nhmmer(files / "family.hmm", files / "genome.fa", **search)
        assert results_part(found.report("main", **shown)) == results_part(main), arguments
        assert rows(found.report("tblout")) == rows(table) and found.report("dfamtblout") == dfam, arguments
        made = found.report("stockholm", text_width=shown.get("text_width", 120))
        assert without_author(made) == without_author(alignment), arguments
        # The objects, and copies of them in other processes, say the same as the tables.
        again = pickle.loads(pickle.dumps(found))
        places = [(h.name, h.domains[0].alignment_from, h.domains[0].alignment_to, h.strand) for result in again for h in result]
        assert places == [(row[0].decode(), int(row[6]), int(row[7]), row[11].decode()) for row in map(bytes.split, rows(table))]
        assert again.report("main", **shown) == found.report("main", **shown)
        assert all(h.bias == ctypes.c_float(h.domains[0].bias).value for result in again for h in result)
        seen.add(tuple(results_part(main)))
    print(f"{len(seen)} different results of {len(SEARCHES)} searches")
    assert len(seen) == len(SEARCHES)


def model_lines(text):
    return [line for line in text.splitlines() if not line.startswith(("HMMER3/f", "DATE"))]


def test_models(files):
    seen = set()
    for arguments, settings in MODELS:
        alignment = files / ("one.sto" if "single_by_matrix" in settings else "family.sto")
        alphabet = settings.get("alphabet", "dna")
        subprocess.run([PROGRAM, "build", "--" + alphabet, "-o", os.devnull, *arguments.replace("--rna", "").split(),
                        files / "made.hmm", alignment], check=True)
        models = hmmjit.Builder(**{"alphabet": alphabet, **settings}).build_all(alignment)
        wanted = model_lines((files / "made.hmm").read_text())
        assert model_lines("".join(model.text() for model in models)) == wanted, arguments
        seen.add(tuple(wanted))
    assert len(seen) == len(MODELS)


def test_both_strands(chromosome):
    targets = hmmjit.Targets([("chr1", chromosome)], "dna")
    hits = hmmjit.nhmmer([("family", FAMILY)], targets)[0].reported
    places = {(h.strand, h.domains[0].envelope_from, h.domains[0].envelope_to) for h in hits[:2]}
    assert places == {("+", 3001, 3177), ("-", 3854, 3678)}
    for hit in hits:
        assert 0 < hit.p_value == hit.domains[0].p_value <= 1
        domain = hit.domains[0]
        rows = [block.split("\n")[2].split() for block in domain.alignment.blocks(50).split("\n\n")]
        assert (int(rows[0][1]), int(rows[-1][3])) == (domain.alignment_from, domain.alignment_to)
        down = [int(row[1]) - int(row[3]) for row in rows]
        assert all((n > 0) == (hit.strand == "-") for n in down)
    for strand, sign in (("watson", "+"), ("crick", "-")):
        alone = hmmjit.nhmmer([("family", FAMILY)], targets, strand=strand)[0]
        assert alone.long_targets and {h.strand for h in alone} == {sign}


def test_queries(chromosome, tmp_path):
    alignment = hmmjit.MSA([(f"r{i}", FAMILY[:i] + "AAA" + FAMILY[i + 3:]) for i in range(0, 30, 3)])
    model = hmmjit.Builder().build_msa(alignment)
    table = hmmjit.nhmmer(model, [("chr1", chromosome)], seed=7).report()
    assert len(rows(table)) > 2
    # nhmmer calibrates models of alignments without the seed of the search.
    assert hmmjit.nhmmer(alignment, [("chr1", chromosome)], seed=7).report() == table
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(model.binary(),))
    writer.start()
    assert hmmjit.nhmmer(pipe, [("chr1", chromosome)], seed=7).report() == table
    writer.join()


def test_what_is_refused(chromosome):
    targets = hmmjit.Targets([("chr1", chromosome)], "dna")
    protein = hmmjit.Builder().build("MKVLAAGGHKLMWYFIDE" * 4)
    model = hmmjit.Builder("dna").build(FAMILY)
    with pytest.raises(hmmjit.InputError, match="proteins"):
        hmmjit.nhmmer(protein, [("t", "ACGT")])
    with pytest.raises(hmmjit.NoDeviceError):
        hmmjit.nhmmer(model, targets, device="gpu:99")
    with pytest.raises(hmmjit.UsageError, match="one device"):
        hmmjit.nhmmer(model, targets, device="gpu:0,1")
    with pytest.raises(hmmjit.UsageError, match="strand"):
        hmmjit.nhmmer(model, targets, strand="top")
    found = hmmjit.nhmmer(model, targets)
    for kind in ("domtblout", "pfamtblout"):
        with pytest.raises(hmmjit.UsageError, match="nhmmer"):
            found.report(kind)
    with pytest.raises(hmmjit.UsageError, match="header"):
        found.report("main", header=True)
    with pytest.raises(hmmjit.UsageError, match="merged"):
        found.merge(found)
    with pytest.raises(hmmjit.UsageError, match="Dfam"):
        hmmjit.search(protein, [("t", "MKVLAAGGHKLM")]).report("dfamtblout")


def test_progress(files):
    for strand, strands in ((None, 2), ("watson", 1)):
        seen = []
        found = hmmjit.nhmmer(files / "family.hmm", files / "genome.fa", strand=strand, progress=seen.append, interval=float("inf"))
        cells = strands * found[0].length * seen[-1]["residues"]
        assert (seen[-1]["cells"], seen[-1]["cells_queued"]) == (cells, cells)


def test_a_search_is_cancelled(chromosome):
    models = [hmmjit.Builder("dna").build(FAMILY)] * 20
    with pytest.raises(hmmjit.Cancelled):
        hmmjit.nhmmer(models, [("chr1", chromosome * 3000)], max=True, progress=lambda _: False, interval=0.01)


def test_like_pyhmmer(chromosome):
    easel = pytest.importorskip("pyhmmer.easel", reason="SKIPPED, NOT COMPARED: pyhmmer is not installed")
    pyhmmer = pytest.importorskip("pyhmmer")
    alphabet = easel.Alphabet.dna()
    query = easel.TextSequence(name=b"family", sequence=FAMILY).digitize(alphabet)
    with gzip.open(data_folder() / "dna/ali/MADE1.sto.gz") as file:
        alignment = next(easel.MSAFile(io.BytesIO(file.read()), digital=True, alphabet=alphabet))
    hmm, _, _ = pyhmmer.plan7.Builder(alphabet).build_msa(alignment, pyhmmer.plan7.Background(alphabet))
    target = chromosome + complement(hmm.consensus.upper()) + GENOME
    block = easel.DigitalSequenceBlock(alphabet, [easel.TextSequence(name=b"chr1", sequence=target).digitize(alphabet)])
    for query in (query, hmm, alignment):
        want = list(next(iter(pyhmmer.nhmmer(query, block, cpus=1))).reported)
        got = hmmjit.nhmmer(query, block)[0]
        assert len(got) > 0
        assert [(h.strand, h.domains[0].alignment_from, h.domains[0].alignment_to) for h in got] == \
            [(h.best_domain.strand, h.best_domain.alignment.target_from, h.best_domain.alignment.target_to) for h in want]
        assert [x for h in got for x in (h.score, h.e_value)] == \
            pytest.approx([x for h in want for x in (h.score, h.evalue)])
