"""Models from sequences and alignments and searches in rounds, in the Python package: against the installed
programs of HMMER, and the program. Run by run_pytest.py, which sets the paths."""
import copy
import os
import pickle
import random
import shutil
import subprocess

import pytest
from common import MODELS, PROGRAM, data_folder

import hmmjit

SEED = int(os.environ.get("HMMJIT_TEST_SEED", random.SystemRandom().randrange(1, 2**31)))


def run(*arguments):
    return subprocess.run([str(a) for a in arguments], check=True, capture_output=True).stdout


def oracle(name):
    """A program of HMMER, or hmmjit's with a note if HMMER is not installed."""
    if shutil.which(name):
        return [name, "--cpu", "0"]
    print(f"{name} is not installed: compared with hmmjit {name} only")
    return [PROGRAM, name.replace("hmm", "")] + ([] if name == "hmmbuild" else ["--quiet", "--device", "cpu"])


def lines(text):
    """Results without names of programs and files, and without times."""
    out = [line for line in text.decode().splitlines() if not line.startswith("#")]
    start = next((i for i, line in enumerate(out) if line.startswith("Query:")), 0)
    return out[start:]


def model_lines(text):
    return [line for line in text.splitlines() if not line.startswith(("HMMER3/f", "DATE", "COM"))]


def made_of(model):
    """The lines of a model that do not depend on its alignment or date."""
    return [line for line in model_lines(model.text()) if not line.startswith(("NSEQ", "EFFN", "CKSUM", "MAP"))]


def alignment_lines(text):
    return [line for line in text.decode().splitlines() if not line.startswith("#=GF AU")]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Queries and targets of families: relatives of random sequences, so that rounds have hits."""
    print(f"random seed {SEED} (HMMJIT_TEST_SEED repeats it)")
    rng = random.Random(SEED)
    folder = tmp_path_factory.mktemp("building")
    letters = "ACDEFGHIKLMNPQRSTVWY"

    def mutated(text, rate):
        out = []
        for c in text:
            if rng.random() < rate / 10:
                continue
            out.append(rng.choice(letters) if rng.random() < rate else c)
            if rng.random() < rate / 10:
                out.append(rng.choice(letters))
        return "".join(out)

    roots = ["".join(rng.choice(letters) for _ in range(n)) for n in (60, 120, 200)]
    targets = [(f"t{i}", f"relative {i}", mutated(rng.choice(roots), 0.1 + 0.6 * rng.random())) for i in range(60)]
    targets += [(f"d{i}", "", "".join(rng.choice(letters) for _ in range(150))) for i in range(60)]
    (folder / "targets.fasta").write_text("".join(f">{n} {d}\n{r}\n" for n, d, r in targets))
    queries = [(f"q{i}", f"query {i}", mutated(root, 0.2)) for i, root in enumerate(roots)]
    (folder / "queries.fasta").write_text("".join(f">{n} {d}\n{r}\n" for n, d, r in queries))
    (folder / "one.fasta").write_text("".join(f">{n} {d}\n{r}\n" for n, d, r in queries[1:2]))
    rows = [(f"r{i}", "".join(rng.choice(letters) if rng.random() < 0.3 else c for c in roots[1])) for i in range(12)]
    rows = [(n, "".join("-" if rng.random() < 0.05 else c for c in r)) for n, r in rows]
    (folder / "family.sto").write_text("# STOCKHOLM 1.0\n#=GF ID family\n#=GF AC PF1\n#=GF DE about it\n"
                                       "#=GF GA 20 18;\n" + "".join(f"{n} {r}\n" for n, r in rows) + "//\n")
    return folder, queries, targets, rows


@pytest.mark.parametrize("builder, options, arguments", [
    ({}, {}, []), ({}, {"E": 1e-10, "incE": 1e-20}, ["-E", "1e-10", "--incE", "1e-20"]),
    ({"score_matrix": "PAM120", "popen": 0.05, "pextend": 0.5}, {}, ["--mx", "PAM120", "--popen", "0.05", "--pextend",
                                                                     "0.5"]),
    ({"EmL": 80, "EvN": 60, "Eft": 0.1}, {"T": 20}, ["--EmL", "80", "--EvN", "60", "--Eft", "0.1", "-T", "20"]),
    (None, {"seed": 7}, ["--seed", "7"])])
def test_phmmer(data, tmp_path, builder, options, arguments):
    folder, queries, _, _ = data
    made = None if builder is None else hmmjit.Builder(**builder)
    found = hmmjit.phmmer(folder / "queries.fasta", folder / "targets.fasta", builder=made, device="cpu", **options)
    text = run(*oracle("phmmer"), *arguments, "--tblout", tmp_path / "t", "--domtblout", tmp_path / "d", "-A",
               tmp_path / "a", folder / "queries.fasta", folder / "targets.fasta")
    assert lines(found.report("main")) == lines(text)
    assert lines(found.report("tblout")) == lines((tmp_path / "t").read_bytes())
    assert lines(found.report("domtblout")) == lines((tmp_path / "d").read_bytes())
    assert alignment_lines(found.report("stockholm")) == alignment_lines((tmp_path / "a").read_bytes())
    assert [r.name for r in found] == ["q0", "q1", "q2"] and found[0].description == "query 0"
    assert found.statistics["hits_reported"] > 3


def test_models_of_sequences(data):
    _, queries, targets, _ = data
    builder = hmmjit.Builder()
    model = builder.build(hmmjit.Sequence(*queries[1][::2], description="d"))
    assert model.name == "q1" and model.query == ("q1", "", "d") and model.length == len(queries[1][2])
    assert builder.build(queries[1][2]).name == "query"
    sequences = [(n, r, "", d) for n, d, r in queries]
    built = builder.build_many(sequences)
    assert [m.name for m in built] == ["q0", "q1", "q2"]
    assert [m.text() for m in built] == [builder.build(s).text() for s in sequences]
    again = hmmjit.Models(model.binary())[0]
    assert again.binary() == hmmjit.Models(again.binary())[0].binary() and again.query is None
    assert made_of(again) == made_of(model)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.binary() == again.binary() and copy.query == model.query
    # Scores do not change.
    sought = [(n, r) for n, _, r in targets]
    scores = [[h.score for h in hmmjit.search(m, sought, device="cpu")[0]] for m in (model, copy, again)]
    assert scores[0] == scores[1] == scores[2] and scores[0]
    assert builder.build_many([("empty", "")]).count() == 0


class Aligned:
    """As PyHMMER's alignments and sequences."""

    def __init__(self, alphabet):
        self.alphabet, self.name, self.sequence, self.names = alphabet, "x", "ACGTACGTAC" * 3, ["x"]

    def write(self, file, format):
        file.write(b"# STOCKHOLM 1.0\nx ACGTACGTAC\ny ACGTACGTAC\n//\n")


def test_alphabets_are_those_of_the_sequences(tmp_path):
    path = tmp_path / "s.fa"
    path.write_text(">x\n" + "ACGTACGTAC" * 3 + "\n")
    given, builder = hmmjit.Targets(path, "dna"), hmmjit.Builder()
    assert pickle.loads(pickle.dumps(given)).alphabet == "dna" and hmmjit.Targets(path).alphabet is None
    for source in (given, (Aligned("dna") for _ in range(2)), [Aligned("dna")]):
        assert {m.alphabet for m in builder.build_many(source)} == {"dna"}
    for source in ((Aligned("rna") for _ in range(2)), [Aligned("rna")]):
        assert hmmjit.Targets(source).alphabet == "rna"
    for unknown in ("protein", 3, None):
        assert hmmjit.Targets([Aligned(unknown)]).alphabet == "amino"
    assert hmmjit.Session([Aligned("dna")]).alphabet == hmmjit.Targets([given]).alphabet == "dna"
    assert builder.build_many(path)[0].alphabet == hmmjit.Builder().build("ACGT").alphabet == "amino"
    assert hmmjit.Builder("rna").build_many(path)[0].alphabet == "rna"
    assert [builder.build_msa(Aligned(a)).alphabet for a in ("amino", "rna", None)] == ["amino", "rna", "dna"]
    database = tmp_path / "d.hjdb"
    assert hmmjit.build_database([given], database)["alphabet"] == "dna"
    assert hmmjit.build_database(path, tmp_path / "a.hjdb")["alphabet"] == "amino"
    assert hmmjit.nhmmer(hmmjit.Targets(path), path).report() == hmmjit.nhmmer(given, path).report() != b""
    for wrong in ("", "MK1L"):
        with pytest.raises(hmmjit.InputError):
            builder.build(wrong)


@pytest.mark.parametrize("builder, arguments", [
    ({}, []), ({"symfrac": 0.8}, ["--symfrac", "0.8"]), ({"weighting": "gsc"}, ["--wgsc"]),
    ({"weighting": "blosum", "wid": 0.5}, ["--wblosum", "--wid", "0.5"]), ({"weighting": "none"}, ["--wnone"]),
    ({"effective_number": "none"}, ["--enone"]), ({"effective_number": 2.5}, ["--eset", "2.5"]),
    ({"effective_number": "clust"}, ["--eclust"]), ({"ere": 1, "esigma": 60}, ["--ere", "1", "--esigma", "60"]),
    ({"prior": "laplace"}, ["--plaplace"]), ({"prior": "none"}, ["--pnone"]), ({"fragthresh": 0.99}, ["--fragthresh",
                                                                                                     "0.99"]),
    ({"popen": 0.01, "pextend": 0.8}, ["--popen", "0.01", "--pextend", "0.8"]),
    ({"max_insertions": 5, "seed": 9, "EfN": 90}, ["--maxinsertlen", "5", "--seed", "9", "--EfN", "90"])])
def test_models_of_alignments(data, tmp_path, builder, arguments):
    folder, _, _, rows = data
    path = folder / "family.sto"
    run(*oracle("hmmbuild"), "--amino", *arguments, tmp_path / "want.hmm", path)
    expected = model_lines((tmp_path / "want.hmm").read_text())
    made = hmmjit.Builder(**builder)
    for source in (path, path.read_bytes(), hmmjit.MSA.load(path)):
        model = made.build_msa(source)
        assert model_lines(model.text()) == expected
    assert model.name == "family" and model.accession == "PF1" and model.gathering == (20, 18)
    model.write(tmp_path / "own.hmm")
    assert hmmjit.Models.load(tmp_path / "own.hmm")[0].name == "family"
    msa = hmmjit.MSA(rows, "family")
    assert made.build_msa(msa).consensus == model.consensus
    for renamed in (msa, hmmjit.MSA.load(path)):
        renamed.name = "renamed"
        assert made.build_msa(renamed).name == "renamed"
    assert made.build_msa(renamed).accession == "PF1"
    with pytest.raises(hmmjit.UsageError):
        msa.name = "two words"
    if shutil.which("hmmconvert"):
        (tmp_path / "m.h3m").write_bytes(model.binary())
        assert model_lines(run("hmmconvert", tmp_path / "m.h3m").decode()) == expected


def test_several_alignments(data, tmp_path):
    folder, _, _, _ = data
    one = (folder / "family.sto").read_text()
    (tmp_path / "two.sto").write_text(one + one.replace("ID family", "ID other"))
    built = hmmjit.Builder().build_all(tmp_path / "two.sto")
    assert [m.name for m in built] == ["family", "other"]
    with pytest.raises(hmmjit.UsageError, match="2 alignments"):
        hmmjit.Builder().build_msa(tmp_path / "two.sto")
    with pytest.raises(hmmjit.InputError):
        hmmjit.Builder().build_all(tmp_path / "none.sto")
    with pytest.raises(hmmjit.InputError):
        hmmjit.Builder(architecture="hand").build_msa(folder / "family.sto")
    with pytest.raises(hmmjit.InputError):
        hmmjit.Builder(score_matrix="/nowhere/matrix").build("MKVLAAGGHKLM")
    for wrong in ({"score_matrix": "NOSUCH"}, {"popen": 0.5}, {"pextend": -1}, {"symfrac": 2}, {"Eft": 1}, {"EmN": 0},
                  {"weighting": "x"}, {"effective_number": -1}, {"max_insertions": 2}, {"ere": 0}):
        with pytest.raises(hmmjit.UsageError):
            hmmjit.Builder(**wrong).build("MKVLAAGGHKLM")
    with pytest.raises(TypeError):
        hmmjit.Builder().build_msa(3)


@pytest.mark.parametrize("builder, options, arguments", [
    ({}, {}, ["-N", "4"]), ({}, {"incE": 1e-10, "alignments": None}, ["-N", "4", "--incE", "1e-10"]),
    ({"weighting": "none", "effective_number": "none", "score_matrix": "BLOSUM80"}, {},
     ["-N", "4", "--wnone", "--enone", "--mx", "BLOSUM80"]),
    (None, {"seed": 5}, ["-N", "4", "--seed", "5"]),
    ({}, {"report": {"alignments": False, "text_width": 0}}, ["-N", "4", "--noali", "--notextw"])])
def test_rounds(data, tmp_path, builder, options, arguments):
    folder, _, _, _ = data
    made = None if builder is None else hmmjit.Builder(**builder)
    files = [folder / "queries.fasta", folder / "targets.fasta"]
    search = hmmjit.IterativeSearch(*files, max_iterations=4, builder=made, alignment_file=tmp_path / "a", a3m=True,
                                    device="cpu", **options)
    assert len(search) == 3 and not search.done
    rounds = [[] for _ in range(3)]
    for finished in search:
        for one in finished:
            rounds[one.query].append(one)
    assert search.done and list(search) == []
    text = run(*oracle("jackhmmer"), *arguments, "--tblout", tmp_path / "t", "--domtblout", tmp_path / "d", "-A",
               tmp_path / "a", "--chkhmm", tmp_path / "m", "--chkali", tmp_path / "c", *files)
    assert lines(search.report("main")) == lines(text)
    assert lines(search.report("tblout")) == lines((tmp_path / "t").read_bytes())
    assert lines(search.report("domtblout")) == lines((tmp_path / "d").read_bytes())
    assert alignment_lines(search.report("stockholm")) == alignment_lines((tmp_path / "a").read_bytes())
    run(PROGRAM, "jackhmmer", "--quiet", "--device", "cpu", *arguments, "-o", os.devnull, "--a3m", tmp_path / "a3m",
        "--tsv", tmp_path / "tsv", *files)
    for kind in ("a3m", "tsv"):
        assert search.report(kind) == (tmp_path / kind).read_bytes()
    # Models and alignments of every round: the files of a round contain all queries up to it.
    for number in range(1, 5):
        of_round = [r[number - 1] for r in rounds if len(r) >= number]
        if not of_round:
            break
        expected = model_lines((tmp_path / f"m-{number}.hmm").read_text())
        assert model_lines("".join(one.model.text() for one in of_round)) == expected
        alignments = (tmp_path / f"c-{number}.sto").read_bytes()
        assert alignment_lines(b"".join(one.msa.stockholm() for one in of_round)) == alignment_lines(alignments)
    for one in (r[-1] for r in rounds):
        assert one.last and one.iteration >= 1 and len(one.msa) >= 1
    assert max(len(r) for r in rounds) > 1
    assert f"@@ New targets included:   {rounds[0][0].new_targets}\n".encode() in text


def test_jackhmmer(data):
    folder, queries, targets, _ = data
    every = list(hmmjit.jackhmmer(folder / "queries.fasta", folder / "targets.fasta", checkpoints=True, device="cpu"))
    last = list(hmmjit.jackhmmer([(n, r) for n, _, r in queries], [(n, r) for n, _, r in targets], device="cpu"))
    assert [r.query for r in last] == [0, 1, 2]
    for rounds, final in zip(every, last):
        assert [r.iteration for r in rounds] == list(range(1, len(rounds) + 1))
        assert [h.name for h in rounds[-1].hits] == [h.name for h in final.hits]
        assert [h.score for h in rounds[-1].hits] == [h.score for h in final.hits]
        assert rounds[-1].converged == final.converged
        names = {h.name for h in final.hits.included}
        assert {name.rpartition("/")[0] for name in final.msa.names[1:]} == names
    # A search with a round's model gives that round's results.
    again = hmmjit.search(last[0].model, folder / "targets.fasta", device="cpu", incE=0.001, incdomE=0.001)
    assert [h.score for h in again[0]] == [h.score for h in last[0].hits]
    search = hmmjit.IterativeSearch(queries[0][2], folder / "targets.fasta", device="cpu", max_iterations=2, alignments=False)
    [one] = next(search)
    assert one.hits.name == "query" and (search.done or next(search))
    assert b"Domain annotation" in search.report() and b"Alignments" not in search.report()
    for wrong in ({"max_iterations": 0}, {"cutoffs": "ga"}, {"target_count": 4}):
        with pytest.raises(hmmjit.UsageError):
            hmmjit.jackhmmer(folder / "queries.fasta", folder / "targets.fasta", **wrong)
    for wrong in ({"report": {"text_width": 60}}, {"max_iterations": 1, "a3m": True, "alignments": False}):
        with pytest.raises(hmmjit.UsageError):
            hmmjit.IterativeSearch(folder / "queries.fasta", folder / "targets.fasta", **wrong)
    with pytest.raises(hmmjit.InputError):
        list(hmmjit.jackhmmer("MKVLAAGGHKLM", "/nowhere"))
    search = hmmjit.IterativeSearch(folder / "queries.fasta", folder / "targets.fasta", device="cpu")
    next(search)
    assert not search.done
    with pytest.raises(hmmjit.UsageError, match="not done|no further|rounds"):
        search.report("tblout")
    with pytest.raises(hmmjit.Cancelled):
        for _ in hmmjit.IterativeSearch(folder / "queries.fasta", folder / "targets.fasta", max=True, threads=1,
                                        progress=lambda _: False, interval=0.0005):
            pass


def test_rounds_from_a_model(data):
    folder, queries, _, _ = data
    files = [folder / "queries.fasta", folder / "targets.fasta"]
    model = hmmjit.Builder().build_msa(folder / "family.sto")
    options = dict(device="cpu", incE=0.001, incdomE=0.001)
    expected = hmmjit.search(model, files[1], **options)[0]
    rounds = [one for [one] in hmmjit.IterativeSearch(model, files[1], device="cpu", max_iterations=4)]
    first = rounds[0]
    assert first.hits.name == model.name == "family" and first.hits.accession == "PF1"
    assert [(h.name, h.score) for h in first.hits] == [(h.name, h.score) for h in expected]
    # Without the query's row, the alignment has the included domains; the next model is built from it.
    included = sum(d.included for h in first.hits.included for d in h.domains)
    assert len(first.msa) == included > 0
    assert {n.rpartition("/")[0] for n in first.msa.names} == {h.name for h in first.hits.included}
    assert 1 < len(rounds) <= 4 and rounds[1].model.length == model.length
    assert rounds[-1].last and {h.name for h in rounds[1].hits.included} >= {h.name for h in first.hits.included[:3]}
    last = list(hmmjit.jackhmmer([model, model], files[1], device="cpu", max_iterations=4))
    assert [r.query for r in last] == [0, 1]
    assert [h.score for h in last[0].hits] == [h.score for h in last[1].hits] == [h.score for h in rounds[-1].hits]
    search = hmmjit.IterativeSearch(model, files[1], device="cpu", max_iterations=4)
    assert len(list(search)) == len(rounds)
    text = search.report("main").decode()
    assert "Query:       family" in text and "query +" not in text and "including original query" not in text
    # A search without hits ends after one round, converged.
    nothing = list(hmmjit.IterativeSearch(model, [("x", "MKVLAAGGHKLM")], device="cpu"))
    assert len(nothing) == 1 and nothing[0][0].converged and len(nothing[0][0].msa) == 0
    dna = hmmjit.Models.load(MODELS)[0]
    with pytest.raises(hmmjit.UsageError):
        hmmjit.IterativeSearch(dna, files[1], cutoffs="gathering")


@pytest.mark.parametrize("model", ["hmm_versions/fn3_h2.hmm", "hmm_bad/no_stats.hmm", "hmm_odd/no_compo_no_map.hmm"])
def test_score_statistics_are_written_as_by_hmmconvert(model):
    if not shutil.which("hmmconvert"):
        pytest.skip("SKIPPED, NOT COMPARED: hmmconvert is not installed")
    file = data_folder() / "edge" / model
    models = hmmjit.Models.load(file)
    written = [[line for line in text.splitlines() if line.startswith((b"STATS", b"  COMPO"))]
               for text in (models[0].text().encode(), run("hmmconvert", file))]
    assert written[0] == written[1]
    sought = [("t", models[0].consensus.upper())]
    found = [hmmjit.search(m, sought, device="cpu")[0] for m in (models, pickle.loads(pickle.dumps(models)))]
    assert [h.score for h in found[0].reported] == [h.score for h in found[1].reported]


def test_builders_are_pickled(data):
    folder, queries, _, _ = data
    builder = hmmjit.Builder(score_matrix="PAM120", popen=0.05, EmN=60, seed=3)
    for other in (pickle.loads(pickle.dumps(builder)), copy.copy(builder)):
        assert other.build(queries[0][2]).binary() == builder.build(queries[0][2]).binary()


def test_single_queries(data):
    folder, queries, targets, _ = data
    name, description, residues = queries[0]
    sought = [(n, r) for n, _, r in targets]
    one = hmmjit.Sequence(name, residues, "", description)
    expected = hmmjit.phmmer([one], sought, device="cpu")[0]
    sources = [one, {name: residues}]
    try:
        import pyhmmer.easel as easel
        text = easel.TextSequence(name=name.encode() if easel.TextSequence.__doc__ is None else name, sequence=residues)
        digital = text.digitize(easel.Alphabet.amino())
        sources += [text, digital, easel.DigitalSequenceBlock(easel.Alphabet.amino(), [digital])]
    except ImportError:
        print("SKIPPED, NOT COMPARED: pyhmmer is not installed")
    for source in sources:
        found = hmmjit.phmmer(source, sought, device="cpu")
        assert len(found) == 1 and [h.score for h in found[0]] == [h.score for h in expected]
        [first] = next(hmmjit.IterativeSearch(source, sought, device="cpu"))
        assert [h.score for h in first.hits][:1] == [h.score for h in expected][:1]
        assert next(hmmjit.jackhmmer(source, sought, device="cpu", max_iterations=1)).hits.name == name
    with pytest.raises(TypeError, match="no sequence"):
        hmmjit.phmmer(3, sought)
    with pytest.raises(hmmjit.InputError, match="alphabet"):
        list(hmmjit.jackhmmer(hmmjit.Targets([("n", "ACGTACGTACGTACGTACGT")], "dna"), sought, device="cpu"))
    with pytest.raises(TypeError, match="did you mean 'text_width'"):
        hmmjit.IterativeSearch(one, sought, report={"textwidth": 0})
    with pytest.raises(hmmjit.UsageError, match="text_width of the main report"):
        hmmjit.IterativeSearch(one, sought).report("main", text_width=0)
