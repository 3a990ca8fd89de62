"""Conveniences of the Python package: names for editors, pickles, views, asyncio. Run by run_pytest.py, which sets the
paths."""
import asyncio
import contextlib
import copy
import gc
import inspect
import math
import os
import pickle
import pydoc
import re
import shutil
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from common import MODELS, TARGETS, key

import hmmjit
from hmmjit import __main__, _binding, _inputs, _results, _search

def test_editors_see_names_and_options(results):
    hit = results[1][0]
    assert {"name", "score", "e_value", "domains", "length"} <= set(dir(hit))
    assert {"envelope_from", "score", "alignment"} <= set(dir(hit.best_domain))
    assert {"model", "match", "sequence", "posterior"} <= set(dir(hit.best_domain.alignment))
    shown = {"E", "cutoffs", "first_target", "target_count", "threads", "memory", "progress"}
    place = {"first_target", "target_count"}
    for function, refused in ((hmmjit.search, set()), (hmmjit.search_iter, set()), (hmmjit.search_async, set()),
                              (hmmjit.search_to_files, set()), (hmmjit.phmmer, set()), (hmmjit.search_part, place),
                              (hmmjit.jackhmmer, {"cutoffs", *place}), (hmmjit.IterativeSearch, {"cutoffs", *place})):
        assert shown & set(inspect.signature(function).parameters) == shown - refused, function
    # Types and defaults, not None.
    shown = str(inspect.signature(hmmjit.search))
    for text in ("(models: ModelsSource, targets: TargetsSource, *, progress", "interval: float = 0.25", "-> Results",
                 "E: float = 10.0", "T: Optional[float] = None", "seed: int = 42", "max: bool = False",
                 "device: str = 'auto'", "cut_missing: str = 'error'", "memory: Union[int, str] = 0"):
        assert text in shown, shown
    assert "ForwardRef" not in shown and "E: float = 10.0" in pydoc.render_doc(hmmjit.search, renderer=pydoc.plaintext)
    for function in (hmmjit.jackhmmer, hmmjit.IterativeSearch):
        assert inspect.signature(function).parameters["incE"].default == 0.001
    assert inspect.getdoc(hmmjit.Hit.score) == "Bits, of the whole target."
    for name in hmmjit.__all__:
        assert inspect.getdoc(getattr(hmmjit, name)), name
        for member, value in vars(getattr(hmmjit, name)).items():
            if isinstance(value, property) and not member.startswith("_"):
                assert value.__doc__, f"{name}.{member}"


@pytest.mark.parametrize("wrong, text", [
    ({"evalue": 1}, "did you mean 'E'"), ({"cpus": 2}, "did you mean 'threads'"),
    ({"thread": 2}, "did you mean 'threads'"), ({"cutoff": "ga"}, "did you mean 'cutoffs'"),
    ({"xyzzy": 2}, "search has no option 'xyzzy'$"), ({"E": -1}, "^E takes a number above 0, not -1"),
    ({"E": "x"}, "^E takes a number above 0, not 'x'|^E takes a number, not 'x'"), ({"T": None, "E": 0}, "^E takes"),
    ({"memory": "lots"}, "memory takes bytes, or a size such as '400M'"), ({"threads": 1.5}, "threads takes an integer"),
    ({"cutoffs": "x"}, "no cutoffs 'x'")])
def test_messages_speak_of_what_was_given(wrong, text):
    with pytest.raises((TypeError, hmmjit.UsageError), match=text):
        hmmjit.search(MODELS, TARGETS, **wrong)


@pytest.mark.parametrize("call, text", [
    (lambda: hmmjit.search(MODELS, TARGETS, cutoffs="trusted"), "set cut_missing .except for a scan., search without cutoffs, or use models"),
    (lambda: hmmjit.Targets(TARGETS, format="nonsense"), '^format: "nonsense" is not a sequence format'),
    (lambda: hmmjit.Builder(score_matrix="NOSUCH").build("MKVLAAGGHKLM"), "^score_matrix: .*or set score_matrix$"),
    (lambda: hmmjit.Builder(architecture="hand").build_msa(
        b"# STOCKHOLM 1.0\n\na MKVLAAGGHKLM\n//\n"), "; .*or set architecture to"),
    (lambda: hmmjit.Cache("/nowhere", mode="ro").clear(), "; open it with mode='rw'$"),
    (lambda: hmmjit.search(MODELS, TARGETS, E=10**400), "^E takes a number"),
    (lambda: hmmjit.search(MODELS, TARGETS, interval=math.nan), "^interval takes a number"),
    (lambda: hmmjit.search_iter(MODELS, TARGETS, buffer="3"), "^buffer takes an integer, not '3'"),
    (lambda: hmmjit.Targets([("a", "ACDE")])["a"], "^an index takes an integer, not 'a'"),
    (lambda: hmmjit.Builder(symfrac=2).build("MKVLAAGGHKLM"), "^symfrac: "),
    (lambda: hmmjit.plan(100, device="foo"), '^unknown device "foo"; known devices'),
    (lambda: hmmjit.plan(2**32 + 100), "^model_length takes 1 to"),
    (lambda: hmmjit.Models.load("weights"), "^weights: cannot be opened"),
    (lambda: hmmjit.search(MODELS, TARGETS, cache="x"), "^cache takes a Cache, not 'x'"),
    (lambda: hmmjit.Targets([("a", None)]), "^target 'a' has no residues"),
    (lambda: hmmjit.Report("tblout", ""), "^an output needs a file name"),
    (lambda: hmmjit.Report("tblout", "-"), "^-: an output needs a file name")])
def test_messages_speak_python(call, text):
    with pytest.raises(hmmjit.Error, match=text) as caught:
        call()
    assert "--" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.remedy == caught.value.remedy


def test_models_can_be_changed(tmp_path):
    models = hmmjit.Models.load(MODELS)
    before = [len(r.reported) for r in hmmjit.search(models, TARGETS, device="cpu", cutoffs="gathering")]
    assert models[1] is models[1] and before[1] > 0
    models[1].gathering = (1000, 1000)
    for source in (models, [models[1]], models[1], copy.copy(models), copy.deepcopy(models),
                   pickle.loads(pickle.dumps(models)), hmmjit.Models(models), models[0:2]):
        found = hmmjit.search(source, TARGETS, device="cpu", cutoffs="gathering")
        changed = found[1] if len(found) > 1 else found[0]
        assert changed.name == "model1" and len(changed.reported) == 0
    copied = copy.copy(models[1])
    copied.gathering, copied.name, copied.accession, copied.description = (10, 5.5), "new", "PF1.2", "about it"
    assert models[1].gathering == (1000, 1000) and models[1].name == "model1"
    for model in (copied, pickle.loads(pickle.dumps(copied)), hmmjit.Models(copied.text().encode())[0]):
        assert (model.name, model.accession, model.description) == ("new", "PF1.2", "about it")
        assert model.gathering == (10, 5.5) and model.noise is None
    result = hmmjit.search(copied, TARGETS, device="cpu", cutoffs="gathering")[0]
    assert (result.name, result.accession, len(result.reported)) == ("new", "PF1.2", before[1])
    for shown, row in ((True, r"\n +PF1\.2 +\d"), (False, r"\n +new +\d")):
        assert re.search(row, hmmjit.Results([result], {}, found._options).report("main", prefer_accession=shown).decode())
    listed = hmmjit.Models([copied])
    copied.gathering = None
    assert listed[0] is copied and copied.gathering is None
    with pytest.raises(hmmjit.InputError, match="unavailable on model new"):
        hmmjit.search(listed, TARGETS, device="cpu", cutoffs="gathering")
    copied.query = ("q", "", "d")
    struct, handle = copied._struct, weakref.ref(copied._handle)
    copied.query = ("q", "", "e")
    assert handle() is not None  # another thread may be reading the struct
    del struct
    assert handle() is None
    copied.query = ("q", "", "d")
    assert copied.query == ("q", "", "d") and hmmjit.search(copied, TARGETS, device="cpu")[0].name == "q"
    for name, value in (("gathering", 5), ("gathering", (1, 2, 3)), ("gathering", ("x", 1)), ("name", ""),
                        ("noise", (math.inf, 1)), ("noise", (1e300, 1)), ("name", "two words"), ("description", "a\nb"),
                        ("query", ("two words", "", "")), ("query", ("q", "", "a\nb")), ("query", ("a", "b"))):
        with pytest.raises(hmmjit.UsageError):
            setattr(copied, name, value)
    assert copied.name == "new" and copied.query == ("q", "", "d")


def test_files_stay_as_they_were_where_writing_fails(tmp_path, monkeypatch):
    models, msa = hmmjit.Models.load(MODELS), hmmjit.MSA({"a": "AC"})
    models.write(tmp_path / "models")
    assert len(hmmjit.Models.load(tmp_path / "models")) == 5
    read = hmmjit.Models(tmp_path / "models")
    read.write(tmp_path / "models")
    assert [m.text() for m in read] == [m.text() for m in models]
    before = (tmp_path / "models").read_bytes()

    def fail(self, *_):
        raise MemoryError

    monkeypatch.setattr(hmmjit.Model, "_written", fail)
    monkeypatch.setattr(hmmjit.MSA, "stockholm", fail)
    for thing in (models, models[0], msa):
        with pytest.raises(MemoryError):
            thing.write(tmp_path / "models")
        assert os.listdir(tmp_path) == ["models"] and (tmp_path / "models").read_bytes() == before


def test_reports_appear_where_they_were_begun(results, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    report = hmmjit.Report("tblout", "table")
    os.chdir("other")
    report.complete()
    assert sorted(os.listdir(tmp_path)) == ["other", "table"] and os.listdir() == []
    bare = hmmjit.search(MODELS, TARGETS, device="cpu", alignments=False)
    targets = hmmjit.Targets.load(TARGETS)
    alive = weakref.ref(targets)
    gc.disable()  # no cycle keeps the temporary file or the targets
    try:
        with pytest.raises(hmmjit.InputError):
            hmmjit.search("/nowhere", targets, device="cpu")
        del targets
        assert alive() is None
        with pytest.raises(hmmjit.UsageError):
            bare.report("stockholm", "x")
        assert os.listdir() == []
    finally:
        gc.enable()


def test_no_thread_is_left(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_search, "_workers", _search._Workers())
    monkeypatch.setattr(_search.threading.Thread, "start", refuse)
    with pytest.raises(hmmjit.ResourcesError, match="cannot be started: can't start new thread; raise the limit"):
        hmmjit.search(MODELS, TARGETS)


def test_threads_search_with_changed_models(monkeypatch):
    models, targets = hmmjit.Models.load(MODELS), hmmjit.Targets.load(TARGETS)
    add = _binding.models_add
    monkeypatch.setattr(_binding, "models_add", lambda *arguments: (time.sleep(0.02), add(*arguments)))
    models[0].name = "n1"
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: hmmjit.search(models, targets, device="cpu", threads=1)[0].name, range(4)))
        assert found == ["n1"] * 4
        monkeypatch.setattr(_inputs, "Model", lambda *arguments: (time.sleep(0.02), hmmjit.Model(*arguments))[1])
        assert len({id(model) for model in pool.map(models.__getitem__, [1] * 4)}) == 1


def test_nothing_is_set_without_effect(results):
    hit, model = results[1][0], hmmjit.Models.load(MODELS)[0]
    for thing, name in ((hit, "score"), (hit, "e_value"), (hit.best_domain, "score"), (hit.best_domain.alignment, "model"),
                        (results[1], "name"), (results[1], "Z"), (results[1], "counts"), (model, "length"),
                        (model, "consensus"), (model, "alphabet"), (hit, "new_name"), (model, "new_name"),
                        (results[1], "new_name")):
        with pytest.raises(AttributeError):
            setattr(thing, name, 1)
    with pytest.raises(AttributeError, match="attribute 'name' of 'Result' objects is read-only"):
        results[1].name = "x"


def test_parameters_of_models():
    model = hmmjit.Models.load(MODELS)[0]
    lines = iter(model.text().splitlines())
    for line in lines:
        if line.split()[:1] == ["HMM"]:
            break
    next(lines)
    composition = [math.exp(-float(x)) for x in next(lines).split()[1:]]
    assert list(model.composition) == pytest.approx(composition, rel=1e-4)
    matches, inserts, transitions = model.match_emissions, model.insert_emissions, model.transition_probabilities
    assert len(matches) == len(inserts) == len(transitions) == model.length + 1
    for k in range(model.length + 1):
        if k > 0:
            assert [-math.log(p) for p in matches[k]] == pytest.approx(
                [float(x) for x in next(lines).split()[1:21]], abs=1e-4)
        assert [-math.log(p) for p in inserts[k]] == pytest.approx([float(x) for x in next(lines).split()[:20]], abs=1e-4)
        for p, x in zip(transitions[k], next(lines).split()[:7]):
            assert p == 0 if x == "*" else -math.log(p) == pytest.approx(float(x), abs=1e-4)
    line = next(line for line in model.text().splitlines() if line.startswith("STATS LOCAL MSV"))
    assert model.evalue_parameters["msv"] == pytest.approx([float(x) for x in line.split()[3:]], abs=1e-4)


def test_models_without_cutoffs():
    models = hmmjit.Models.load(MODELS)
    models[2].gathering = None
    with pytest.raises(hmmjit.InputError, match="unavailable on model model2"):
        hmmjit.search(models, TARGETS, device="cpu", cutoffs="gathering")
    skipped = hmmjit.search(models, TARGETS, device="cpu", cutoffs="gathering", cut_missing="skip")
    assert [r.name for r in skipped] == ["model0", "model1", "model3", "model4"]
    both = hmmjit.search(models, TARGETS, device="cpu", cutoffs="gathering", cut_missing="default")
    plain = hmmjit.search(models, TARGETS, device="cpu")
    assert [h.name for h in both[2].reported] == [h.name for h in plain[2].reported]
    assert both.options["cutoffs"] == "gathering" and both.options["cut_missing"] == "default"
    assert plain.options["E"] == 10 and plain.options["T"] is None and plain.options["incE"] == 0.01
    scores = dict.fromkeys(("T", "domT", "incT", "incdomT"), 0.0)
    zeros = hmmjit.search(models, TARGETS, device="cpu", **scores)
    assert {**zeros.options, **scores} == zeros.options and zeros.options["Z"] is zeros.options["domZ"] is None
    for result in (skipped, both, zeros):
        assert pickle.loads(pickle.dumps(result)).options == result.options


def test_cutoffs_from_a_mapping():
    models = hmmjit.Models.load(MODELS)
    models[3].accession = "PF00003.7"
    changed = copy.deepcopy(models)
    table = {"model1": (15, 12.5), "PF00003": (None, 9), "not there": (1, 1)}
    changed[1].gathering, changed[3].gathering = (15, 12.5), (-999, 9)
    wanted = hmmjit.search([changed[1], changed[3]], TARGETS, device="cpu", cutoffs="gathering")
    found = hmmjit.search(models, TARGETS, device="cpu", cutoffs=table, cut_missing="skip")
    assert [r.name for r in found] == ["model1", "model3"] and len(found[0].reported) > 0
    assert [k[1:] for k in key(found)] == [k[1:] for k in key(wanted)]
    assert found.report("domtblout") == wanted.report("domtblout")
    assert found.options["cutoffs"] == {**table, "model1": (15.0, 12.5)}
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(found))))
    assert again.report("main") == found.report("main") and again.options == found.options
    with pytest.raises(hmmjit.InputError, match="no model has the cutoffs"):
        hmmjit.search(models, TARGETS, device="cpu", cutoffs={"other": (1, 1)}, cut_missing="skip")
    with pytest.raises(hmmjit.InputError, match="does not have model model0"):
        hmmjit.search(models, TARGETS, device="cpu", cutoffs=table)
    for wrong in ({"model1": 3}, {"model1": (1, 2, 3)}, {"model1": ("x", 1)}, {"model1": (float("nan"), 1)}):
        with pytest.raises(hmmjit.UsageError, match="takes"):
            hmmjit.search(models, TARGETS, device="cpu", cutoffs=wrong)


def test_p_values(results):
    for result in results:
        for hit in result:
            assert hit.p_value * result.Z == pytest.approx(hit.e_value, rel=1e-6)
            assert hit.ln_p == pytest.approx(math.log(hit.p_value)) and hit.query == result.name
            assert hit.result is result
            for domain in hit.domains:
                assert domain.p_value * result.Z == pytest.approx(domain.independent_e_value, rel=1e-6)
            for kind in ("reported", "included"):
                wanted = [d.envelope_from for d in hit.domains if getattr(d, kind)]
                assert [d.envelope_from for d in getattr(hit.domains, kind)] == wanted


def test_other_names_are_explained(results):
    hit = results[1][0]
    for thing, name, other in ((hit, "evalue", "e_value"), (hit.best_domain, "i_evalue", "independent_e_value"),
                               (hit.best_domain, "hmm_from", "model_from"),
                               (hit.best_domain.alignment, "hmm_sequence", "model")):
        with pytest.raises(AttributeError, match=f"it is called '{other}' here"):
            getattr(thing, name)
        assert not hasattr(thing, name)


def test_sizes_as_the_program_takes_them(results):
    for memory in ("2G", "400M", "0.5 GiB", 2**30):
        assert key(hmmjit.search(MODELS, TARGETS, device="cpu", memory=memory)) == key(results)


def test_lengths_tell_the_truth(tmp_path):
    for kind, path, number in ((hmmjit.Models, MODELS, 5), (hmmjit.Targets, TARGETS, 300)):
        of_path, loaded = kind(path), kind.load(path)
        assert len(loaded) == loaded.count() == of_path.count() == number
        assert bool(of_path) and bool(loaded) and not kind([])
        with pytest.raises(TypeError, match=r"count\(\) reads the file"):
            len(of_path)
        with pytest.raises(TypeError, match=r"load\(\)"):
            of_path[0]
        assert len(list(of_path)) == number
    hmmjit.build_database(TARGETS, tmp_path / "t.hjdb")
    assert hmmjit.Targets(tmp_path / "t.hjdb").count() == 300
    with pytest.raises(hmmjit.InputError):
        hmmjit.Targets("/nowhere").count()


def test_models_of_a_path_are_read_in_bounded_memory(tmp_path, monkeypatch):
    (tmp_path / "many").write_bytes(open(MODELS, "rb").read() * 400)
    made = []
    monkeypatch.setattr(_inputs, "Model", lambda one: made.append(None) or hmmjit.Model(one))
    models = iter(hmmjit.Models(tmp_path / "many"))
    assert next(models).name == "model0"
    models.close()
    assert len(made) < 1000


def test_targets_are_a_sequence(tmp_path):
    loaded = hmmjit.Targets.load(TARGETS)
    hmmjit.build_database(TARGETS, tmp_path / "t.hjdb")
    every = list(loaded)
    assert every == list(hmmjit.Targets(TARGETS)) == list(hmmjit.Targets(tmp_path / "t.hjdb"))
    assert every == [loaded[i] for i in range(300)] and loaded[-1] == every[-1]
    assert loaded[5:9] == every[5:9] and loaded[::-50] == every[::-50]
    assert every[3].name == "target3" and every[3].description == "number 3" and every[3].residues.isupper()
    with pytest.raises(IndexError):
        loaded[300]
    text = open(TARGETS).read()
    assert "".join(every[3].residues) in text.replace("\n", "")
    assert list(hmmjit.Targets(every)) == every
    assert next(iter(hmmjit.Targets(TARGETS))).name == every[0].name  # and the reader is released
    before = threading.active_count()
    assert before < 20
    models = hmmjit.Models.load(MODELS)
    assert [m.name for m in models[1:3]] == ["model1", "model2"]
    with pytest.raises(IndexError):
        models[-6]


def test_a_loop_over_targets_in_memory_is_a_pass_over_them(monkeypatch):
    given = [hmmjit.Sequence(f"s{i}", "ACDEF" * (i % 7)) for i in range(30_000)]
    targets = hmmjit.Targets(given)
    begun, visit = [], hmmjit.Targets._visit
    monkeypatch.setattr(hmmjit.Targets, "_visit",
                        lambda self, first, use: begun.append(first) or visit(self, first, use))
    assert [one for one, _ in zip(targets, iter(targets))] == given
    assert len(begun) < 20
    assert pickle.loads(pickle.dumps(targets))[29_999] == given[-1]


def scores_of(models, targets, threads=1):
    return [[h.score for h in r] for r in hmmjit.search(models, targets, device="cpu", threads=threads)]


def test_everything_can_be_pickled_and_copied(results):
    again = pickle.loads(pickle.dumps(results))
    assert key(again) == key(results) and again.statistics == results.statistics
    for kind in ("tblout", "domtblout", "tsv", "json", "a3m", "stockholm", "html", "main"):
        assert again.report(kind, date="d") == results.report(kind, date="d"), kind
    by_models = hmmjit.search(MODELS, TARGETS, device="cpu", Z=5, E=1e-3)
    again = pickle.loads(pickle.dumps(by_models))
    for kind in ("scan_tblout", "scan_domtblout"):
        assert again.report(kind) == by_models.report(kind), kind
    assert again.report("main", header=True) == by_models.report("main", header=True)
    hit = results[1][1]
    domain = hit.domains[-1]
    for thing in (results[1], hit, domain, domain.alignment):
        for other in (pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing)):
            assert type(other) is type(thing) and str(other) == str(thing)
    assert pickle.loads(pickle.dumps(hit)).index == hit.index
    assert pickle.loads(pickle.dumps(domain)).score == domain.score
    assert key(copy.deepcopy(results)) == key(copy.copy(results)) == key(results)
    models, targets = hmmjit.Models.load(MODELS), hmmjit.Targets.load(TARGETS)
    for source in (models, hmmjit.Models(MODELS)):
        assert [m.text() for m in pickle.loads(pickle.dumps(source))] == [m.text() for m in models]
    for source in (targets, hmmjit.Targets(TARGETS)):
        assert list(pickle.loads(pickle.dumps(source))) == list(targets)
    assert pickle.loads(pickle.dumps(models[2])).binary() == models[2].binary()
    table = pickle.loads(pickle.dumps(results.table()))
    assert list(table) == list(results.table()) and len(table) == len(results.table())
    with pytest.raises(hmmjit.InputError):
        pickle.loads(pickle.dumps(results[0]).replace(b"hmmjit result ", b"hmmjit xesult "))
    assert results[1][0] == results[1][0] != results[1][1] and len({results[1][0], results[1][0]}) == 1


def test_damaged_pickles_are_refused(results):
    data = hmmjit.search(MODELS, list(hmmjit.Targets.load(TARGETS))[:60], device="cpu")[1].__reduce__()[1][0]
    refused = 0
    for place in range(data.index(b"\n") + 1, min(len(data), 1200)):
        for value in (0, 0x7f, data[place] ^ 1):
            damaged = data[:place] + bytes([value]) + data[place + 1:]
            try:
                result = _results._result_of(damaged)
                for kind in ("main", "domtblout", "stockholm", "a3m", "json", "html"):
                    hmmjit.Results([result], {}, results._options).report(kind)
            except (hmmjit.InputError, hmmjit.UsageError, hmmjit.ResourcesError):
                refused += 1
    assert refused > 100


def test_a_forked_child_can_search(results, tmp_path):
    (tmp_path / "big").write_text("".join(f">s{i}\n{'ACDEFGHIKL' * 100000}\n" for i in range(8)))
    begun = iter(hmmjit.Targets(tmp_path / "big"))
    next(begun)
    session = hmmjit.Session(TARGETS, device="gpu")
    with contextlib.suppress(hmmjit.NoDeviceError):
        session.search(MODELS)
    report = hmmjit.Report("tblout", tmp_path / "table")
    child = os.fork()
    if child == 0:
        # Threads do not survive a fork: the child's search starts its own.
        try:
            with pytest.raises(hmmjit.UsageError, match="belongs to the parent"):
                list(begun)
            scores = scores_of(MODELS, TARGETS, threads=3)[0]
            del session, report  # which stay the parent's
            os._exit(0 if scores else 1)
        except BaseException:
            os._exit(2)
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0 and len(list(begun)) == 7
            report.complete()
            assert (tmp_path / "table").exists()
            return
        time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the child's search did not end")


@pytest.mark.parametrize("options", [{}, {"E": 1e-3, "incE": 1e-9}, {"E": 1e-20, "domE": 1e-9}, {"T": 20, "incT": 30}, {"Z": 1000}, {"domZ": 5}])
def test_results_are_merged(options):
    every = list(hmmjit.Targets.load(TARGETS))
    whole = hmmjit.search(MODELS, every, device="cpu", **options)
    sets = [hmmjit.search(MODELS, every[a:b], device="cpu", **options) for a, b in ((0, 90), (90, 100), (100, 300))]
    merged = sets[0].merge(*sets[1:])
    assert key(hmmjit.Results.merge(sets)) == key(merged)
    with pytest.raises(TypeError):
        hmmjit.Results.merge([1, 2])
    for kind in ("tblout", "domtblout", "pfamtblout", "tsv", "json", "a3m", "stockholm"):
        assert merged.report(kind) == whole.report(kind), kind
    assert key(merged) == key(whole)
    for name in ("targets", "residues", "hits_reported", "domains_reported"):
        assert merged.statistics[name] == whole.statistics[name], name
    assert merged[0].counts == whole[0].counts
    assert merged.statistics["counts"] == whole.statistics["counts"] != sets[0].statistics["counts"]
    for results, peak in zip(sets, (2, 3, 1)):
        results.statistics["device_peak_bytes"] = peak
    assert sets[0].merge(*sets[1:]).statistics["device_peak_bytes"] == 3
    with pytest.raises(hmmjit.InputError, match="different models"):
        merged.merge(hmmjit.Results(reversed(sets[0]), sets[0].statistics, sets[0]._options))
    by_cutoffs = hmmjit.search(MODELS, every, device="cpu", cutoffs="gathering")
    with pytest.raises(hmmjit.UsageError, match="cutoffs"):
        by_cutoffs.merge(by_cutoffs)


def test_views_for_notebooks(results):
    for thing in (results, results[1], results.table(), results[1][0].best_domain, results[1][0].best_domain.alignment,
                  hmmjit.Models.load(MODELS), results[1].to_msa()):
        page = thing._repr_html_()
        assert page.startswith("<") and page.count("<table>") == page.count("</table>")
    assert repr(results).startswith("<hmmjit.Results of 5 models")
    odd = hmmjit.search(MODELS, [("<b>&", s.residues) for s in hmmjit.Targets.load(TARGETS)], device="cpu")
    assert "<b>&" not in odd._repr_html_() and "&lt;b&gt;&amp;" in odd._repr_html_()


def test_alignments_are_printed_in_blocks(results):
    domain = max((d for r in results for h in r for d in h.domains), key=lambda d: len(d.alignment))
    alignment = domain.alignment
    text = alignment.blocks(30)
    blocks = text.split("\n\n")
    assert len(blocks) == -(-len(alignment) // 30) and all(len(b.split("\n")) == 4 for b in blocks)
    rows = [[line.split() for line in b.split("\n")] for b in blocks]
    assert "".join(r[0][2] for r in rows) == alignment.model
    assert "".join(r[2][2] for r in rows) == alignment.sequence
    assert rows[0][0][0] == domain.hit._owner.name and rows[0][2][0] == domain.hit.name
    assert int(rows[0][0][1]) == domain.model_from and int(rows[-1][0][3]) == domain.model_to
    assert int(rows[0][2][1]) == domain.alignment_from and int(rows[-1][2][3]) == domain.alignment_to
    assert str(alignment) == alignment.blocks(80)
    with pytest.raises(hmmjit.UsageError, match="width"):
        alignment.blocks(0)


def test_alignments_of_results(results, tmp_path):
    msa = results[1].to_msa()
    included = sum(d.included for h in results[1].included for d in h.domains)
    assert len(msa) == included > 3 and msa.columns >= results[1].length
    assert {len(text) for _, text in msa} == {msa.columns}
    assert msa[0][0].rpartition("/")[0] in {h.name for h in results[1]}
    again = pickle.loads(pickle.dumps(msa))
    assert again == msa and again.stockholm() == msa.stockholm()
    for format in ("stockholm", "fasta"):
        msa.write(tmp_path / format, format)
        assert list(hmmjit.MSA.load(tmp_path / format)) == list(msa)
    (tmp_path / "foreign").write_text("# STOCKHOLM 1.0\n#\n\n#comment AC\n s1\tAC-D\n  s2 \tACED\n//\n")
    assert list(hmmjit.MSA.load(tmp_path / "foreign")) == [("s1", "AC-D"), ("s2", "ACED")]
    for text in (">s1 a->b > c\nAC-D\n>s2\nACED\n", "\ufeff>s1\nAC-D\n >s2\nACED\n", "\n >s1\rAC-D\r>s2\rACED\r"):
        (tmp_path / "fasta").write_text(text, "utf-8")
        assert list(hmmjit.MSA.load(tmp_path / "fasta")) == [("s1", "AC-D"), ("s2", "ACED")]
    (tmp_path / "fasta").write_text("s1\n>s2\nACED\n")
    with pytest.raises(hmmjit.InputError, match="no alignment"):
        hmmjit.MSA.load(tmp_path / "fasta")
    named = [(mark + s.name, s.residues) for mark, s in zip(["#", "//", ""] * 100, hmmjit.Targets.load(TARGETS))]
    assert len(hmmjit.search(MODELS, named, device="cpu")[1].to_msa()) == included
    built = hmmjit.Builder().build_msa(msa)
    assert len(hmmjit.search(built, TARGETS, device="cpu")[0].included) >= len(results[1].included) - 1
    bare = hmmjit.search(MODELS, TARGETS, device="cpu", alignments=False)
    with pytest.raises(hmmjit.UsageError):
        bare[1].to_msa()
    with pytest.raises(hmmjit.UsageError):
        hmmjit.MSA({"a": "AC", "b": "A"})
    for rows, name in (({"two words": "AC"}, "x"), ({"a": "AC"}, "two words"), ({"a": "AC"}, None), ({"": "AC"}, "x")):
        with pytest.raises(hmmjit.UsageError, match="one word"):
            hmmjit.MSA(rows, name)


def test_only_ends_of_lines_end_lines(tmp_path):
    odd = "a\u2028b \u0085c"
    own = hmmjit.Targets([(s.name, s.residues, "", odd) for s in hmmjit.Targets.load(TARGETS)])
    msa = hmmjit.search(MODELS, own, device="cpu")[1].to_msa()
    assert len(msa) > 3 and odd in msa.stockholm().decode()
    (tmp_path / "dos").write_bytes(msa.stockholm().replace(b"\n", b"\r\n"))
    assert hmmjit.MSA.load(tmp_path / "dos") == msa
    assert len(list(hmmjit.jackhmmer([own[0]], own, device="cpu", max_iterations=2))) == 1
    source = tmp_path / f"{odd}.fasta"
    shutil.copy(TARGETS, source)
    assert hmmjit.build_database(source, tmp_path / "odd.hjdb")["sources"] == [str(source)]


def test_asyncio(results):
    async def work():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        clock = asyncio.create_task(tick())
        found = await asyncio.gather(*(hmmjit.search_async(MODELS, TARGETS, device="cpu", threads=1) for _ in range(3)))
        assert all(key(one) == key(results) for one in found)
        assert ticks > 3
        seen = [result async for result in hmmjit.search_iter(MODELS, TARGETS, device="cpu")]
        assert key(seen) == key(results)
        rounds = [r async for r in hmmjit.IterativeSearch(hmmjit.Targets.load(TARGETS)[0].residues, TARGETS,
                                                          device="cpu", max_iterations=2)]
        assert 1 <= len(rounds) <= 2
        with pytest.raises(hmmjit.InputError):
            await hmmjit.search_async("/nowhere", TARGETS)
        long = hmmjit.Models([open(MODELS, "rb").read()] * 600), hmmjit.Targets.load(TARGETS)  # minutes
        task = asyncio.create_task(hmmjit.search_async(*long, device="cpu", threads=1, max=True))
        await asyncio.sleep(0.1)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begun < 20
        ended = threading.Event()  # by the loop, which runs while a search ends
        runs = []
        task = asyncio.create_task(_search.in_loop(
            lambda tell: runs.append(_search.Run(lambda _: ended.wait(20), on_done=tell)) or runs[0]))
        await asyncio.sleep(0)
        task.cancel()
        asyncio.get_running_loop().call_later(0.01, ended.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert runs[0].value
        ended.clear()
        seen = []
        async with hmmjit.search_iter(*long, buffer=1, device="cpu", threads=1, interval=0.001,
                                      progress=lambda _: seen.append(None) or seen.append(ended.wait(20))):
            while not seen:
                await asyncio.sleep(0.001)
            asyncio.get_running_loop().call_later(0.01, ended.set)
        assert seen[1]
        clock.cancel()

    asyncio.run(work())


def test_threads_are_used_again():
    one = hmmjit.Models.load(MODELS)[0]
    targets = hmmjit.Targets.load(TARGETS)[:1]
    own = hmmjit.Targets(targets)
    hmmjit.search(one, own, device="cpu", threads=1)
    names = {t.ident for t in threading.enumerate() if t.name == "hmmjit search"}
    for _ in range(50):
        hmmjit.search(one, own, device="cpu", threads=1)
    assert {t.ident for t in threading.enumerate() if t.name == "hmmjit search"} == names


def test_few_threads_wait_for_more_searches():
    def workers():
        return sum(t.name == "hmmjit search" for t in threading.enumerate())
    own = hmmjit.Targets(hmmjit.Targets.load(TARGETS)[:1])
    models = hmmjit.Models.load(MODELS)
    assert len(models) > 3
    together = threading.Barrier(6)
    seen = []

    def search():  # the results of the others, and so their threads, wait for space in the buffer
        for _ in hmmjit.search_iter(models, own, buffer=1, device="cpu", threads=1):
            if len(seen) < 6:
                together.wait(60)
                seen.append(workers())
                together.wait(60)
    callers = [threading.Thread(target=search) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert max(seen) >= 6
    deadline = time.monotonic() + 60
    while workers() > 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert workers() <= 2


def test_a_link_to_the_script_keeps_its_name(monkeypatch):
    calls = []
    monkeypatch.setattr(sys, "argv", ["links/jackhmmer", "-h"])
    monkeypatch.setattr(__main__, "program", lambda: "/bin/hmmjit")
    monkeypatch.setattr(os, "execv", lambda *call: calls.append(call))
    __main__.main()
    assert calls == [("/bin/hmmjit", ["links/jackhmmer", "-h"])]
