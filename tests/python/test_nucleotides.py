"""Nucleotides in the Python package: recorded runs of nhmmer and hmmbuild, and PyHMMER where it is installed."""
import gzip
import io
import os
import pickle
import re
import shlex
import threading

import pytest
from common import data_folder, rows

import hmmjit

# Each option of nhmmer as arguments of hmmjit.nhmmer, of Builder or of the reports.
SEARCH = {"-E": "E", "-T": "T", "--incE": "incE", "--incT": "incT", "--F1": "F1", "--F2": "F2", "--F3": "F3",
          "--B1": "B1", "--B2": "B2", "--B3": "B3", "-Z": "Z", "--seed": "seed", "--w_length": "window_length",
          "--w_beta": "window_beta", "--block_length": "block_length"}
FLAGS = {"--max": {"max": True}, "--nobias": {"bias_filter": False}, "--nonull2": {"null2": False},
         "--watson": {"strand": "watson"}, "--crick": {"strand": "crick"}, "--cut_ga": {"cutoffs": "ga"},
         "--cut_nc": {"cutoffs": "nc"}, "--cut_tc": {"cutoffs": "tc"}}
BUILD = {"--popen": "popen", "--pextend": "pextend", "--symfrac": "symfrac", "--eset": "effective_number",
         "--maxinsertlen": "max_insertions", "--w_length": "window_length", "--w_beta": "window_beta", "--seed": "seed"}
BUILD_FLAGS = {"--dna": {"alphabet": "dna"}, "--rna": {"alphabet": "rna"}, "--singlemx": {"single_by_matrix": True},
               "--wgsc": {"weighting": "gsc"}, "--plaplace": {"prior": "laplace"},
               "--eclust": {"effective_number": "clust"}}
SHOWN = {"--noali": {"alignments": False}, "--acc": {"prefer_accession": True}, "--notextw": {"text_width": 0}}
OUTPUTS = {"--tblout": "tblout", "--dfamtblout": "dfamtblout", "-A": "stockholm"}

SEARCHES = ["nh_made1", "nh_mito", "nh_mito_max", "nh_multi", "nh_block50000", "nh_block50001_crick",
            "nh_watson", "nh_crick", "nh_Z", "nh_T", "nh_incT", "nh_max_crick", "nh_nobias", "nh_nonull2",
            "nh_tc_vert_ali", "nh_notextw", "nh_textw200", "nh_popen", "nh_rna_target", "nh_ali_made1"]
MODELS = ["hb_made1", "hb_made1_dna", "hb_made1_rna", "hb_let7_rna", "hb_ecori", "hb_sine", "hb_wbeta", "hb_wbeta0",
          "hb_wlength", "hb_singlemx", "hb_popen", "hb_wgsc_eset", "hb_plaplace", "hb_seed", "hb_maxins"]


def recorded(case):
    """The words of a recorded command, and a function that reads its outputs."""
    folder = data_folder() / "dna/expected"
    for line in (folder / "commands.tsv").read_text().splitlines():
        name, _, command = line.partition("\t")
        if name == case:
            return shlex.split(command)[1:-2], lambda kind: gzip.open(folder / f"{case}.{kind}.gz").read()
    pytest.skip(f"no recorded case {case}")


def find(path):
    for folder in (data_folder() / "dna", data_folder() / "dna/expected"):
        for found in (folder / path, folder / (path + ".gz")):
            if found.exists():
                return str(found)
    raise FileNotFoundError(path)


def number(text):
    return float(text) if re.search(r"[.e]", text) else int(text)


def results_part(text):
    return [line for line in text[text.index(b"Query:"):].splitlines() if line and not line.startswith(b"#")]


@pytest.mark.parametrize("case", SEARCHES)
def test_recorded_searches(case):
    words, output = recorded(case)
    search, build, shown, kinds, files = {}, {}, {}, {}, []
    words = iter(words)
    for word in words:
        if word in FLAGS:
            search.update(FLAGS[word])
        elif word in BUILD_FLAGS:
            build.update(BUILD_FLAGS[word])
        elif word in SHOWN:
            shown.update(SHOWN[word])
        elif word in OUTPUTS:
            kinds[OUTPUTS[word]] = next(words).rpartition(".")[2]
        elif word == "--textw":
            shown["text_width"] = int(next(words))
        elif word in ("--cpu", "--aliscoresout", "--hmmout"):
            next(words)
        elif word in BUILD and word not in SEARCH:
            build[BUILD[word]] = number(next(words))
        elif word.startswith("-"):
            search[SEARCH[word]] = number(next(words))
        else:
            files.append(find(word))
    builder = hmmjit.Builder(**build)
    queries = files[0]
    if queries.endswith((".fa", ".fa.gz")):
        queries = hmmjit.Targets.load(queries, build.get("alphabet", "dna"))
    elif ".sto" in queries:
        queries = builder.build_all(queries)
    found = hmmjit.nhmmer(queries, files[1], builder=builder, **search)
    assert results_part(found.report("main", **shown)) == results_part(output("out"))
    if "tblout" in kinds:
        assert rows(found.report("tblout")) == rows(output("tbl"))
    if "dfamtblout" in kinds:
        assert found.report("dfamtblout") == output("dfam")
    if "stockholm" in kinds:
        made = [found.report("stockholm", text_width=shown.get("text_width", 120)), output("sto")]
        made = [[line for line in text.splitlines() if not line.startswith(b"#=GF AU")] for text in made]
        assert made[0] == made[1]
    # The objects, and copies of them in other processes, say the same as the tables.
    table = [line.split() for line in rows(found.report("tblout"))]
    hits = [hit for result in pickle.loads(pickle.dumps(found)) for hit in result]
    assert [(h.name, h.domains[0].alignment_from, h.domains[0].alignment_to, h.strand) for h in hits] == \
        [(row[0].decode(), int(row[6]), int(row[7]), row[11].decode()) for row in table]
    assert pickle.loads(pickle.dumps(found)).report("main", **shown) == found.report("main", **shown)


def model_lines(text):
    return [line for line in text.splitlines() if not line.startswith((b"HMMER3/f", b"DATE"))]


@pytest.mark.parametrize("case", MODELS)
def test_recorded_models(case, tmp_path):
    words, output = recorded(case)
    settings, files = {}, []
    words = iter(words)
    for word in words:
        if word in BUILD_FLAGS:
            settings.update(BUILD_FLAGS[word])
        elif word.startswith("-"):
            settings[BUILD[word]] = number(next(words))
        else:
            files.append(word)
    alignment = tmp_path / files[1].rpartition("/")[2]  # a model without a name has that of the file
    with gzip.open(find(files[1])) if find(files[1]).endswith(".gz") else open(find(files[1]), "rb") as file:
        alignment.write_bytes(file.read())
    models = hmmjit.Builder(**settings).build_all(alignment)
    assert model_lines(b"".join(model.text().encode() for model in models)) == model_lines(output("hmm"))


GENOME = "".join("ACGT"[(i * i * 7 + i // 3) % 4] for i in range(3000))
FAMILY = "".join("ACGT"[(i * 31 + i * i) % 4] for i in range(120)) + "GATTACAGGCCTTAACGGT" * 3


def complement(text):
    return text[::-1].translate(str.maketrans("ACGT", "TGCA"))


@pytest.fixture(scope="module")
def chromosome():
    return GENOME + FAMILY + GENOME[:500] + complement(FAMILY) + GENOME[::-1]


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


def test_a_search_is_cancelled(chromosome):
    models = [hmmjit.Builder("dna").build(FAMILY)] * 20
    with pytest.raises(hmmjit.Cancelled):
        hmmjit.nhmmer(models, [("chr1", chromosome * 3000)], max=True, progress=lambda _: False, interval=0.01)


def test_like_pyhmmer(chromosome):
    easel = pytest.importorskip("pyhmmer.easel", reason="SKIPPED, NOT COMPARED: pyhmmer is not installed")
    pyhmmer = pytest.importorskip("pyhmmer")
    alphabet = easel.Alphabet.dna()
    query = easel.TextSequence(name=b"family", sequence=FAMILY).digitize(alphabet)
    with gzip.open(find("ali/MADE1.sto")) as file:
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
