"""The Python package, compared with the program. Run by run_pytest.py, which sets the paths."""
import codecs
import copy
import ctypes
import gc
import io
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from common import MODELS, PROGRAM, TARGETS, key, rows

import hmmjit
from hmmjit import _binding
from hmmjit._results import COLUMN_TYPES

DESCRIPTION = os.environ["HMMJIT_TEST_ABI"]


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def fasta(path):
    for record in contents(path).decode().split(">")[1:]:
        header, _, residues = record.partition("\n")
        name, _, description = header.partition(" ")
        yield name, residues, None, description


def test_scan_gives_what_the_program_does(tmp_path):
    sequences = hmmjit.Targets.load(TARGETS)
    kinds = {"tblout": "--tblout", "domtblout": "--domtblout", "pfamtblout": "--pfamtblout", "tsv": "--tsv", "json": "--json",
             "main": "-o"}
    paths = [word for kind, option in kinds.items() for word in (option, str(tmp_path / kind))]
    for options, arguments in (({}, []), ({"T": 20, "domE": 1e-3, "Z": 77}, ["-T", "20", "--domE", "1e-3", "-Z", "77"]),
                               ({"cutoffs": "gathering", "max": True}, ["--cut_ga", "--max"])):
        subprocess.run([PROGRAM, "scan", "--quiet", "--device", "cpu", *arguments, *paths, MODELS, TARGETS], check=True)
        found = hmmjit.scan(sequences, hmmjit.Models.load(MODELS), device="cpu", **options)
        assert len(found) == 300 and all(r.scan and r.length == len(s.residues) for r, s in zip(found, sequences))
        for kind in kinds:
            want, got = contents(tmp_path / kind), found.report(kind)
            if kind == "main":  # without the header, and the times of each sequence
                want, got = ([line for line in text[text.index(b"Query:"):].splitlines()
                              if not line.startswith((b"# CPU", b"# Mc"))] for text in (want, got))
                assert got == want[:len(got)] and want[len(got):] in ([], [b"[ok]"])
            elif kind == "json":  # the last line describes the run
                assert got.splitlines()[:-1] == want.splitlines()[:-1]
                last = json.loads(found.report(kind, query_file=TARGETS, target_file=MODELS).splitlines()[-1])
                wanted = json.loads(want.splitlines()[-1])
                assert {**last, **dict.fromkeys(("program", "options", "folder", "date"))} == \
                    {**wanted, **dict.fromkeys(("program", "options", "folder", "date"))}
            else:
                assert rows(got) == rows(want), kind
        again = pickle.loads(pickle.dumps(found))
        assert again.report("domtblout", date="d") == found.report("domtblout", date="d")
    assert key(hmmjit.Session(sequences, device="cpu").scan(MODELS, max=True, cutoffs="gathering")) == key(found)
    hit = next(h for r in hmmjit.scan(TARGETS, MODELS, device="cpu") for h in r)
    assert str(hit.domains[0].alignment).split()[0] == hit.name  # the model's row is the first
    table = found.table("domains")
    assert all(0 < c <= 1 for c in table["model_coverage"])
    head, *lines = (line.split("\t") for line in found.report("tsv").decode().splitlines())
    assert list(table) == head and len(table) == len(lines) > 5
    for column, name in enumerate(head):
        assert [line[column] for line in lines] == [str(v) for v in table[name]] or COLUMN_TYPES.get(name) not in (b"U", b"l"), name
    for kind in ("scan_tblout", "stockholm", "a3m", "html"):
        with pytest.raises(hmmjit.UsageError, match="a scan has no such report"):
            found.report(kind)
    plain = hmmjit.scan(sequences, MODELS, device="cpu")
    with pytest.raises(hmmjit.UsageError, match="scans"):
        plain.merge(plain)
    with pytest.raises(hmmjit.UsageError, match="missing_cutoffs|cut_missing"):
        hmmjit.scan(sequences, MODELS, cutoffs="noise", cut_missing="skip")
    with pytest.raises(hmmjit.InputError, match="cutoff"):
        hmmjit.scan(sequences, MODELS, device="cpu", cutoffs="noise", max=True)


def test_structs_are_laid_out_as_the_library_lays_them_out():
    published = {}
    with open(DESCRIPTION, encoding="ascii") as lines:
        for line in lines:
            match = re.match(r"layout (\w+)(?:\.(\w+) offset (\d+))? size (\d+)", line)
            if match:
                published.setdefault(match[1], {})[match[2]] = (int(match[3] or 0), int(match[4]))
    assert set(_binding.STRUCTS) == set(published)
    for name, struct in _binding.STRUCTS.items():
        members = {n: (getattr(struct, n).offset, getattr(struct, n).size) for n, _ in struct._fields_}
        members[None] = (0, ctypes.sizeof(struct))
        assert members == published[name], name


def test_same_bytes_as_the_program(results, tmp_path):
    files = {kind: tmp_path / kind for kind in ("tblout", "domtblout", "pfamtblout", "tsv", "a3m")}
    subprocess.run([PROGRAM, "search", "--quiet", "--device", "cpu", "-o", os.devnull]
                   + [part for kind, path in files.items() for part in (f"--{kind}", path)] + [MODELS, TARGETS],
                   check=True)
    for kind, path in files.items():
        expected = rows(contents(path))
        assert expected
        assert rows(results.report(kind)) == expected, kind
        own = tmp_path / (kind + ".own")
        results.report(kind, own)
        assert rows(contents(own)) == expected


def test_version_is_known_where_the_package_is_installed():
    import importlib.metadata
    if not any(name.endswith(".dist-info") for name in os.listdir(os.path.dirname(os.path.dirname(hmmjit.__file__)))):
        pytest.skip("the package of the source tree: not installed")
    assert importlib.metadata.version("hmmjit") == hmmjit.__version__


def test_hits_and_domains(results):
    assert [r.index for r in results] == [0, 1, 2, 3, 4]
    assert results.statistics["targets"] == 300
    assert results.statistics["backend"].startswith("cpu/")
    assert sum(len(r.reported) for r in results) == results.statistics["hits_reported"] > 20
    best = results[1][0]
    assert best.reported and best.included and best.e_value < 1e-3
    assert best.description == "number " + best.name[len("target"):]
    assert best.best_domain.score == max(d.score for d in best.domains)
    alignment = best.best_domain.alignment
    assert len(alignment.model) == len(alignment.sequence) == len(alignment.posterior) > 0
    assert alignment.sequence.replace("-", "").isalpha()
    assert str(alignment).count("\n") == 3
    assert [h.name for h in results[1][:2]] == [results[1][0].name, results[1][1].name]
    with pytest.raises(AttributeError):
        best.nonsense
    kept = best.best_domain.alignment  # outlives everything it came from
    del best, alignment
    assert kept.model


def test_sources(results):
    expected = key(results)
    everything = list(fasta(TARGETS))
    for models in (hmmjit.Models.load(MODELS), contents(MODELS), [contents(MODELS)],
                   [hmmjit.Models(contents(MODELS))], io.BytesIO(contents(MODELS)),
                   codecs.getreader("utf-8")(open(MODELS, "rb"))):
        assert key(hmmjit.search(models, TARGETS, device="cpu")) == expected
    for targets in (hmmjit.Targets.load(TARGETS), contents(TARGETS), everything, iter(everything),
                    {name: residues for name, residues, _, _ in everything}, open(TARGETS, "rb")):
        assert key(hmmjit.search(MODELS, targets, device="cpu")) == expected
    assert len(hmmjit.Targets(everything)) == 300
    models = hmmjit.Models.load(MODELS)
    assert len(models) == 5 and models[-1].name == "model4"
    assert models[0].gathering == (10.0, 10.0) and models[0].trusted is None
    assert len(models[0].consensus) == models[0].length


def test_paths_and_single_models(results, tmp_path):
    expected = key(results)
    loaded = hmmjit.Models.load(MODELS)
    one = hmmjit.search(loaded[2], TARGETS, device="cpu")
    assert [k[1:] for k in key(one)] == [k[1:] for k in expected if k[0] == "model2"]
    assert [m.name for m in hmmjit.Models(MODELS)] == [m.name for m in loaded] == [f"model{i}" for i in range(5)]
    assert key(hmmjit.search(list(loaded), TARGETS, device="cpu")) == expected
    assert key(hmmjit.search([MODELS], [TARGETS], device="cpu")) == expected
    assert len(hmmjit.Models([MODELS, loaded[0], contents(MODELS), hmmjit.Models(MODELS)])) == 16
    assert len(hmmjit.Targets([TARGETS, ("own", "ACDE"), hmmjit.Targets.load(TARGETS)])) == 601
    with pytest.raises(hmmjit.InputError):
        list(hmmjit.Models("/nowhere"))


def test_databases(results, tmp_path):
    path = tmp_path / "t.hjdb"
    info = hmmjit.build_database(TARGETS, path)
    assert info == hmmjit.database_info(path)
    assert info["targets"] == 300 and info["alphabet"] == "amino" and info["sources"] == [TARGETS]
    assert info["program"] == "hmmjit " + hmmjit.__version__
    for targets in (path, hmmjit.Targets.load(path), contents(path), [path]):
        assert key(hmmjit.search(MODELS, targets, device="cpu")) == key(results)
    assert info["shortest"] <= info["median"] <= info["longest"]
    with pytest.raises(hmmjit.InputError):
        hmmjit.Targets.load(path, alphabet="dna")
    with pytest.raises(hmmjit.InputError):
        hmmjit.Targets(contents(path), alphabet="dna")
    with pytest.raises(hmmjit.UsageError):
        hmmjit.Targets.load(path, format="fasta")
    assert hmmjit.build_database([TARGETS, path], tmp_path / "twice.hjdb")["targets"] == 600
    own = hmmjit.build_database(list(fasta(TARGETS)), tmp_path / "own.hjdb")
    assert own["identity"] == info["identity"] and own["sources"] == ["memory"]
    hmmjit.verify_database(path)
    loaded = hmmjit.Targets.load(path)
    damaged = bytearray(contents(path))
    damaged[len(damaged) // 2] ^= 0x15
    path.write_bytes(damaged)
    with pytest.raises(hmmjit.InputError):
        hmmjit.verify_database(path)
    path.write_bytes(b"")
    with pytest.raises(hmmjit.InputError):
        hmmjit.database_info(path)
    assert key(hmmjit.search(MODELS, loaded, device="cpu")) == key(results)  # which needs its file no more


def test_a_session_gives_what_searches_without_it_give(results, tmp_path):
    queries = list(hmmjit.Targets.load(TARGETS))[:3]
    rounds = [key(r.hits for r in all_rounds)
              for all_rounds in hmmjit.jackhmmer(queries, TARGETS, max_iterations=3, checkpoints=True, device="cpu")]
    sequences = key(hmmjit.phmmer(queries, TARGETS, device="cpu", E=1e-3))
    path, copied = tmp_path / "targets.hjdb", tmp_path / "targets.fasta"
    hmmjit.build_database(TARGETS, path)
    shutil.copy(TARGETS, copied)
    for source in (path, copied, contents(TARGETS), hmmjit.Targets.load(TARGETS)):
        session = hmmjit.Session(source, threads=1)
        if source in (path, copied):
            os.rename(source, tmp_path / "elsewhere")  # it has been read, or is mapped
        found = {}

        def search(number):
            if number == 0:
                found[0] = [key(r.hits for r in all_rounds)
                            for all_rounds in session.jackhmmer(queries, max_iterations=3, checkpoints=True)]
            elif number == 1:
                found[1] = key(session.phmmer(queries, E=1e-3))
            else:
                found[number] = key(session.search_iter(MODELS) if number == 2 else session.search(MODELS))

        threads = [threading.Thread(target=search, args=(i,)) for i in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [found[i] for i in range(5)] == [rounds, sequences] + [key(results)] * 3
        assert key(hmmjit.search(MODELS, session, device="cpu")) == key(results)
        assert len(list(session)) == 300 and session[4] == hmmjit.Targets.load(TARGETS)[4]
    with pytest.raises(hmmjit.UsageError):
        hmmjit.Session(TARGETS, threads=-1)
    with pytest.raises(hmmjit.InputError):
        hmmjit.Session(copied)


class Record:
    """As Biopython's SeqRecord."""

    def __init__(self, id, seq, description):
        self.id, self.seq, self.description = id, seq, description


def test_records(results):
    records = [Record(name, residues, f"{name} {description}") for name, residues, _, description in fasta(TARGETS)]
    records.append(Record("n", "ACD", "nn of GenBank"))
    assert [t.description for t in hmmjit.Targets(records)] == [d for *_, d in fasta(TARGETS)] + ["nn of GenBank"]
    assert key(hmmjit.search(MODELS, records[:-1], device="cpu")) == key(results)
    with pytest.raises(TypeError):
        hmmjit.Targets([3])
    with pytest.raises(TypeError):
        hmmjit.Models([3])


def test_pyhmmer_objects(results):
    easel = pytest.importorskip("pyhmmer.easel")
    plan7 = pytest.importorskip("pyhmmer.plan7")
    expected = [k[:4] for k in key(results)]
    with plan7.HMMFile(MODELS) as models, easel.SequenceFile(TARGETS, digital=True) as targets:
        found = hmmjit.search(models, targets, device="cpu")
    assert [k[:2] for k in key(found)] == [k[:2] for k in expected]
    assert [k[:4] for k in key(found)] == expected  # exactly: models come as binary
    with easel.SequenceFile(TARGETS, digital=True) as file:
        block = file.read_block()
    assert key(hmmjit.search(MODELS, block, device="cpu")) == key(results)
    with plan7.HMMFile(MODELS) as models:
        model = next(iter(models))
    assert hmmjit.Models(model)[0].name == "model0"
    profile = plan7.Profile(model.M, model.alphabet)
    profile.configure(model, plan7.Background(model.alphabet))
    for configured in (profile, profile.to_optimized()):
        for source in (configured, [configured]):
            with pytest.raises(TypeError, match="the HMM it was made of"):
                hmmjit.Models(source)


def test_tables(results, tmp_path):
    targets, domains = results.table(), results.table("domains")
    reported = [(r, h) for r in results for h in r.reported]
    assert len(targets) == len(reported)
    assert list(targets["target"]) == [h.name for _, h in reported]
    assert list(targets["model"]) == [r.name for r, _ in reported]
    assert list(targets["evalue"]) == [h.e_value for _, h in reported]
    # Names, order and values equal those of --tsv, which may have more columns.
    header, *lines = (line.split("\t") for line in results.report("tsv").decode().rstrip("\n").split("\n"))
    lines = [dict(zip(header, line)) for line in lines]
    for table, rows_of in ((targets, [line for line in lines if line["domain"] == "1"]),
                           (domains, [line for line in lines if line["domain"]])):
        shared = [name for name in table if name in header]
        assert shared == [name for name in header if name in table]
        assert set(table) - set(shared) <= {"domains", "expected_domains", "domains_included"}
        with_domains = [i for i in range(table.rows) if "domains" not in set(table) or table["domains"][i] > 0]
        assert len(rows_of) == len(with_domains) > 20
        for name in shared:
            for i, line in zip(with_domains, rows_of):
                value, text = table[name][i], line[name]
                assert value == text or float(value) == pytest.approx(float(text), rel=1e-6), name
    assert {"i_evalue", "hmm_from", "ln_p", "domain_included"} <= set(domains)
    # Domains may be included without being reported.
    subprocess.run([PROGRAM, "search", "--quiet", "--device", "cpu", "--domT", "15", "--incdomE", "10", "--target-tsv",
                    tmp_path / "tsv", "-o", tmp_path / "out", MODELS, TARGETS], check=True)
    header, *lines = (line.split("\t") for line in (tmp_path / "tsv").read_text().splitlines())
    by_target = hmmjit.search(MODELS, TARGETS, device="cpu", domT=15, incdomE=10).table()
    for name in ("domains", "domains_included"):
        assert [str(n) for n in by_target[name]] == [line[header.index(name)] for line in lines]
    assert len(domains) == sum(d.reported for _, h in reported for d in h.domains)
    assert set(domains["model"]) <= {r.name for r in results}
    assert len(results[0].table()) == len(results[0].reported)
    with pytest.raises(hmmjit.UsageError):
        results.table("nonsense")
    empty = hmmjit.search(MODELS, TARGETS, device="cpu", E=1e-300).table("domains")
    assert len(empty) == 0 and list(empty) == list(domains)
    numpy = pytest.importorskip("numpy")
    assert targets["score"].dtype == numpy.float64 and targets["included"].dtype == bool


def test_documented_defaults_are_those_of_the_library():
    from hmmjit import _interface
    options, builder = _binding.SearchOptions(), _binding.BuildOptions()
    _binding.search_options_init(ctypes.byref(options))
    _binding.build_options_init(ctypes.byref(builder))
    for name, (member, default) in _interface.OPTIONS.items():
        value = getattr(options, member)
        if default is None:
            assert value in (None, 0, -1) or value != value, name
        elif isinstance(default, str):
            assert value == 0, name
        else:
            assert value == default, name
    header = contents(os.path.join(os.path.dirname(hmmjit.__file__), "..", "..", "include", "hmmjit", "hmmjit.h"))
    body = re.search(rb"typedef struct hmmjit_build_options \{(.*?)\}", header, re.S)[1].decode()
    defaults = dict(re.findall(r"(\w+);\s*/\*(?:(?!\*/).)*?; default ([-\w.]+)", body, re.S))
    assert set(defaults) == {name for name, *_ in builder._fields_[1:]}
    for name, default in defaults.items():
        value = getattr(builder, name)
        assert value == (None if default == "NULL" else float(default)) or default == "NaN" and value != value, name


def test_options(results):
    assert hmmjit.search(MODELS, TARGETS, device="cpu", Z=1000)[0].Z == 1000
    assert hmmjit.search(MODELS, TARGETS, device="cpu", T=100).statistics["hits_reported"] < \
        results.statistics["hits_reported"]
    bare = hmmjit.search(MODELS, TARGETS, device="cpu", alignments=False)
    assert bare[0][0].best_domain.alignment.model == ""
    assert results[0].has_alignments and not bare[0].has_alignments
    for kind in ("a3m", "stockholm"):
        with pytest.raises(hmmjit.UsageError, match="alignments"):
            bare.report(kind)
    assert b'"alignment"' in results.report("json") and b'"alignment"' not in bare.report("json")
    with pytest.raises(hmmjit.UsageError, match="number of models"):
        results.report("scan_tblout")
    assert rows(hmmjit.search(MODELS, TARGETS, device="cpu", Z=5).report("scan_tblout"))
    assert hmmjit.search(MODELS, TARGETS, device="cpu", max=True)[0].counts["forward"] == 300
    assert len(hmmjit.search(MODELS, TARGETS, device="cpu", cutoffs="gathering")) == 5
    assert hmmjit.search(MODELS, TARGETS, device="cpu", target_count=9).statistics["targets"] == 9
    assert hmmjit.search(MODELS, TARGETS, device="cpu", first_target="target290").statistics["targets"] == 10
    last = hmmjit.search(MODELS, TARGETS, device="cpu", first_target="target290", target_count=4)
    assert last.statistics["targets"] == 4 and all("target290" <= hit.name <= "target293" for r in last for hit in r)
    with pytest.raises(hmmjit.InputError):
        hmmjit.search(MODELS, TARGETS, device="cpu", first_target="nobody")
    with pytest.raises(TypeError):
        hmmjit.search(MODELS, TARGETS, nonsense=1)
    with pytest.raises(ValueError):
        hmmjit.search(MODELS, TARGETS, cutoffs="nonsense")
    for device in ("gpu:x", "gpu:", "gpu:0,", "gpu:-1", "gpu:0,0", "cpu:0", "tpu"):
        with pytest.raises(hmmjit.UsageError):
            hmmjit.search(MODELS, TARGETS, device=device)
    for wrong in ({"threads": -1}, {"memory": -5}, {"threads": 2**32 + 1}, {"seed": 2**32}, {"verify": "x"}):
        with pytest.raises(hmmjit.UsageError):
            hmmjit.search(MODELS, TARGETS, device="cpu", **wrong)
    for width in (-1, 60, 2**40):
        with pytest.raises(hmmjit.UsageError):
            results.report("main", text_width=width)


def test_errors():
    with pytest.raises(hmmjit.InputError) as caught:
        hmmjit.search("/nowhere/x.hmm", TARGETS)
    assert "/nowhere/x.hmm" in str(caught.value)
    assert isinstance(caught.value, hmmjit.Error) and isinstance(caught.value, ValueError)
    with pytest.raises(hmmjit.InputError) as caught:
        hmmjit.Targets([("a", "AC1E")])
    assert "illegal" in caught.value.message and "(a)" in caught.value.where
    for target in ("two words", "line\nbreak", "nul\0", "", "tab\tbed", "bell\a", "return\r", "del\x7f"):
        with pytest.raises(hmmjit.UsageError):
            hmmjit.Targets([("good", "ACDE"), (target, "ACDE")])
    for accession, description in (("P 1", ""), ("", "x\n>b")):
        with pytest.raises(hmmjit.UsageError, match="target 2"):
            hmmjit.Targets([("caf\xe9", "ACDE", "P1", "a\tb c"), ("a", "ACDE", accession, description)])
    with pytest.raises(hmmjit.InputError):
        hmmjit.search(MODELS, TARGETS, cutoffs="trusted")
    with pytest.raises(hmmjit.UsageError):
        hmmjit.search(MODELS, TARGETS, F1=-1.0)
    with pytest.raises(hmmjit.OutputError):
        hmmjit.search(MODELS, TARGETS, device="cpu").report("tblout", "/nowhere/table")
    with pytest.raises(IndexError):
        hmmjit.Models.load(MODELS)[5]
    if not hmmjit.devices():
        with pytest.raises(hmmjit.NoDeviceError):
            hmmjit.search(MODELS, TARGETS, device="gpu")


def much():
    """Some seconds of work."""
    return hmmjit.Models([contents(MODELS)] * 60), hmmjit.Targets.load(TARGETS)


def test_progress_and_cancellation():
    seen = []
    hmmjit.search(MODELS, TARGETS, device="cpu", progress=seen.append, interval=float("inf"))
    assert len(seen) == 1
    found = hmmjit.search(MODELS, TARGETS, device="cpu", progress=seen.append, interval=0.001)
    assert len(found) == 5 and seen[-1]["models_done"] == 5 and seen[-1]["targets"] == 300
    assert seen[-1]["target_bytes_read"] == os.path.getsize(TARGETS) and seen[-1]["cells"] == seen[-1]["cells_queued"]
    with pytest.raises(hmmjit.Cancelled):
        hmmjit.search(*much(), device="cpu", progress=lambda p: False, interval=0.001)

    def broken(_):
        raise KeyError("of the caller")

    with pytest.raises(KeyError):
        hmmjit.search(*much(), device="cpu", progress=broken, interval=0.001)
    with pytest.raises(KeyError):
        list(hmmjit.search_iter(*much(), device="cpu", progress=broken, interval=0.001))
    with pytest.raises(RuntimeError, match="a callback raised StopIteration"):  # which would end the list here
        list(hmmjit.search_iter(*much(), device="cpu", progress=lambda _: next(iter(())), interval=0.001))


def test_progress_of_a_scan_in_batches(tmp_path):
    file = tmp_path / "long.fasta"
    file.write_text("".join(f">s{n}\n{'MKVLAAGIDE' * 9000}\n" for n in range(50)))
    seen = []
    hmmjit.scan(file, hmmjit.Models.load(MODELS)[:2], device="cpu", progress=seen.append, interval=0.001)
    last = seen[-1]
    assert last["targets"] == 50 and last["target_bytes_read"] == last["target_bytes_total"] == os.path.getsize(file)
    assert last["targets_complete"] and last["models_started"] == last["models_done"] == 4 and last["cells"] == last["cells_queued"]
    for before, after in zip(seen, seen[1:]):
        assert all(before[name] <= after[name] for name in before), (before, after)
        assert after["targets"] == 50 or not before["targets_complete"]


@pytest.mark.parametrize("work", [
    lambda models, targets: hmmjit.search(models, targets, device="cpu", threads=1, max=True),
    lambda _, targets: hmmjit.Builder(threads=1, EvN=10**4).build_many(targets)], ids=["search", "build"])
def test_interrupted_from_the_keyboard(work):
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    models, targets = much()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        work(models, targets)
    assert time.monotonic() - begun < 20


def test_results_as_they_come(results):
    assert key(hmmjit.search_iter(MODELS, TARGETS, device="cpu", buffer=1)) == key(results)
    stream = hmmjit.search_iter(*much(), device="cpu", buffer=2)
    assert next(stream).index == 0 and next(stream).index == 1
    stream.close()
    shared = hmmjit.search_iter(MODELS, TARGETS, device="cpu", buffer=1)
    with ThreadPoolExecutor(3) as pool:  # each is told of the end
        assert sum(pool.map(lambda _: len(list(shared)), range(3))) == len(results)
    with pytest.raises(hmmjit.InputError):
        list(hmmjit.search_iter("/nowhere", TARGETS))


def test_iterators_have_progress_and_statistics(results):
    seen = []
    with hmmjit.search_iter(MODELS, TARGETS, device="cpu", progress=seen.append, interval=0.001) as stream:
        assert stream.statistics is None
        assert key(stream) == key(results)
        assert seen[-1]["models_done"] == 5
        assert stream.statistics["hits_reported"] == results.statistics["hits_reported"]
    with hmmjit.search_iter(*much(), device="cpu", buffer=1) as stream:
        next(stream)
    assert list(stream) == [] and stream.statistics is None


def test_iterators_that_are_closed_early_are_freed():
    def alive():
        gc.collect()
        return sum(type(thing).__name__ in ("Run", "SearchIterator", "Result") for thing in gc.get_objects())

    before = alive()
    for _ in range(3):
        stream = hmmjit.search_iter(*much(), device="cpu", buffer=2, progress=lambda _: None, interval=0.01)
        next(stream)
        stream.close()
        del stream
    limit = time.monotonic() + 20
    while alive() > before and time.monotonic() < limit:  # threads of closed searches end
        time.sleep(0.05)
    assert alive() <= before


@pytest.mark.parametrize("half_used", [
    "hmmjit.search_iter(hmmjit.Models([open(sys.argv[1], 'rb').read()] * 60), sys.argv[2], buffer=1, device='cpu',"
    " progress=lambda _: None, interval=0.001)", "iter(hmmjit.Targets(sys.argv[2]))"])
def test_half_used_iterators_do_not_abort_the_process_at_its_end(half_used, tmp_path):
    many = tmp_path / "many.fa"
    many.write_bytes(contents(TARGETS) * 100)
    program = f"import sys, hmmjit\nhalf_used = {half_used}\nnext(half_used)"
    ended = subprocess.run([sys.executable, "-c", program, MODELS, many], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_an_exit_handler_that_reads_on_is_told_of_the_end(tmp_path):
    (tmp_path / "many.fa").write_bytes(contents(TARGETS) * 100)
    program = """import atexit, sys
def read_on():
    try:
        print(len(list(targets)))
    except hmmjit.Cancelled as refused:
        print(refused)
atexit.register(read_on)  # runs after the handlers of the package
import hmmjit
targets = iter(hmmjit.Targets(sys.argv[1]))
next(targets)"""
    ended = subprocess.run([sys.executable, "-c", program, tmp_path / "many.fa"], capture_output=True, timeout=60)
    assert (ended.stdout, ended.stderr) == (b"the interpreter is ending\n", b"")


def test_iterators_in_cycles_are_collected_in_any_thread(tmp_path):
    (tmp_path / "many").write_bytes(contents(MODELS) * 400)
    program = """import hmmjit, sys
class Cycle: pass
for _ in range(20):
    cycle = Cycle()
    cycle.me, cycle.models = cycle, iter(hmmjit.Models(sys.argv[1]))
    next(cycle.models)
"""
    ended = subprocess.run([sys.executable, "-c", program, tmp_path / "many"], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("work", ["list(targets)", "hmmjit.search(sys.argv[1], targets, device='cpu', threads=1,"
                                  " progress=lambda _: None, interval=0.001)"])
def test_threads_in_the_background_do_not_abort_the_process_at_its_end(work):
    program = f"""import atexit, sys, threading
ends = threading.Event()
atexit.register(lambda: print(ends.wait(60), len(targets[:2]), len(list(hmmjit.Targets(sys.argv[2])))))
import hmmjit
targets = hmmjit.Targets.load(sys.argv[2])
worked = threading.Event()
def loop():
    while not ends.is_set():
        try:
            {work}
            worked.set()
        except hmmjit.Cancelled as refused:
            if "ending" in str(refused):
                ends.set()
threading.Thread(target=loop, daemon=True).start()
worked.wait(60)"""
    ended = subprocess.run([sys.executable, "-c", program, MODELS, TARGETS], capture_output=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"True 2 300\n", b"")


def test_results_go_to_files(results, tmp_path):
    files = {kind: tmp_path / kind for kind in ("main", "tblout", "domtblout", "json", "a3m", "html")}
    statistics = hmmjit.search_to_files(MODELS, TARGETS, files, device="cpu", report={"query_file": "q", "date": "d"})
    assert statistics["hits_reported"] == results.statistics["hits_reported"]
    for kind in ("tblout", "domtblout", "json", "a3m", "html"):
        assert contents(files[kind]) == results.report(kind, query_file="q", date="d"), kind
    main = contents(files["main"])
    assert main.startswith(b"# libhmmjit :: search") and b"# query HMM file:                  q\n" in main
    assert main.count(b"\n//\n") == 5 and main.endswith(b"[ok]\n")
    assert b"<html" in contents(files["html"])
    gone = tmp_path / "gone"
    with pytest.raises(hmmjit.UsageError):
        hmmjit.search_to_files(MODELS, TARGETS, {"tblout": gone, "a3m": tmp_path / "x"}, device="cpu", alignments=False)
    assert not gone.exists()
    (tmp_path / "link").symlink_to("new")
    os.link(files["json"], tmp_path / "hard")
    for a, b in (("new", "new"), ("new", "link"), ("json", "json"), ("json", "hard"), ("new", f"../{tmp_path.name}/new")):
        with pytest.raises(hmmjit.UsageError, match="tblout writes the same file: domtblout .*; give each"):
            hmmjit.search_to_files(MODELS, TARGETS, {"tblout": tmp_path / a, "domtblout": str(tmp_path / b)}, device="cpu")
    assert not (tmp_path / "new").exists()
    own, library = shutil.copy(TARGETS, tmp_path / "targets.fasta"), shutil.copy(MODELS, tmp_path / "models.hmm")
    with open(own, "rb") as targets, open(os.fsencode(library), "rb") as models:
        sources = [(MODELS, source) for source in (own, [own], hmmjit.Targets(own), hmmjit.Targets.load(own),
                                                   hmmjit.Session(own), hmmjit.Session([own]), targets)]
        sources += [(source, TARGETS) for source in (library, [library], [hmmjit.Models(library)],
                                                     hmmjit.Models.load(library), copy.copy(hmmjit.Models.load(library)),
                                                     models)]
        for source in sources:
            path = os.path.relpath(own if source[0] is MODELS else library)
            with pytest.raises(hmmjit.UsageError, match="an input is the same file: tblout"):
                hmmjit.search_to_files(*source, {"tblout": path}, device="cpu")
    for suffix in (".h3m", ".hjidx"):
        with pytest.raises(hmmjit.UsageError, match="an input is the same file: tblout"):
            hmmjit.search_to_files(MODELS, TARGETS, {"tblout": MODELS + suffix}, device="cpu")
    assert contents(own) == contents(TARGETS) and contents(library) == contents(MODELS)
    hmmjit.search_to_files(MODELS, TARGETS, dict.fromkeys(("tblout", "domtblout"), os.devnull), device="cpu")
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:  # whose members' names are no files
        archive.write(TARGETS, str(gone)[1:])
        with archive.open(str(gone)[1:]) as member:
            hmmjit.search_to_files(MODELS, member, {"tblout": "/" + member.name}, device="cpu")


def test_statistics(results):
    statistics = results.statistics
    assert statistics["passes"] == 1 and statistics["streamed"] is False and statistics["spooled"] is False
    assert statistics["ssv_seconds"] > 0 and statistics["scoring_seconds"] > 0 and statistics["peak_resident_bytes"] > 1 << 20
    assert statistics["kernels"] == statistics["device_launches"] == 0
    text = json.loads(statistics["json"])
    assert text["program"] == "libhmmjit" and text["targets"] == 300 and text["gpu"]["state"] == "off"


def test_warnings():
    program = ("import sys, hmmjit\nhmmjit.search(*sys.argv[1:], device='cpu', threads=4, "
               "warning=lambda w: print(type(w).__name__, w))")
    heard = subprocess.run([sys.executable, "-c", program, MODELS, TARGETS], check=True, capture_output=True, text=True,
                           env=dict(os.environ, LD_PRELOAD=os.environ["HMMJIT_TEST_FAULTS"], HMMJIT_FAULT="pthread_create:3:11"))
    assert re.match(r"ResourcesError only \d of 4 threads could be started; raise the limits", heard.stdout)


def test_another_version_is_refused(tmp_path):
    source = tmp_path / "other.c"
    source.write_text("int hmmjit_version_number(void) { return 200; }\n")
    library = tmp_path / "libother.so"
    if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source]).returncode != 0:
        pytest.skip("no C compiler")
    run = subprocess.run([sys.executable, "-c", "import hmmjit"], capture_output=True, text=True,
                         env=dict(os.environ, HMMJIT_LIBRARY=str(library)))
    assert run.returncode != 0 and "is libhmmjit 0.2" in run.stderr


def test_only_asynchronous_searches_load_asyncio():
    subprocess.run([sys.executable, "-c", "import hmmjit, sys; assert 'asyncio' not in sys.modules"], check=True)


def test_cache_and_plan(tmp_path):
    cache = hmmjit.Cache(directory=tmp_path, mode="rw")
    assert cache.directory == str(tmp_path)
    assert cache.statistics["entries"] == 0 and cache.clear() == 0
    assert len(hmmjit.search(MODELS, TARGETS, device="cpu", cache=cache)) == 5
    planned = hmmjit.plan(120, device="H200", stage="ssv")
    assert planned["device"] == "H200" and planned["chosen"]["expected"]["gcups"] > 0
    with pytest.raises(hmmjit.UsageError):
        hmmjit.plan(120, device="nonsense")
    for wrong in (-1, 2**64):
        with pytest.raises(hmmjit.UsageError, match="max_bytes takes"):
            cache.trim(wrong)
    exact = hmmjit.plan(121, device="H200", stage="ssv", exact_length=True)
    assert exact["chosen"] != hmmjit.plan(121, device="H200", stage="ssv")["chosen"]
    assert re.match(r"\d+\.\d+\.\d+$", hmmjit.__version__)
