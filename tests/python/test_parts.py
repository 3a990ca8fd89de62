"""Parts of a search in the Python package, compared with the program. Run by run_pytest.py, which sets the paths."""
import os
import shutil
import subprocess

import pytest
from common import MODELS, PROGRAM, TARGETS

import hmmjit

KINDS = ("tblout", "domtblout", "pfamtblout", "tsv", "json", "a3m")


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True).stdout


def results_of(text):
    """Without comments and times, and without the run record of JSON lines."""
    return [line for line in text.splitlines()
            if not line.startswith(b"#") and b'"record":"run"' not in line and not line.startswith(b"Internal pipeline")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    hmmjit.build_database(TARGETS, folder / "t.hjdb")
    return folder


def search_parts(folder, number, name, **options):
    made = []
    for part in range(1, number + 1):
        path = folder / f"{name}{part}.hjpart"
        info = hmmjit.search_part(MODELS, folder / "t.hjdb", part, number, path, device="cpu", threads=1 + part % 2,
                                  **options)
        assert (info.part, info.last_part, info.parts) == (part, part, number)
        made.append(path)
    return made


@pytest.mark.parametrize("options, arguments", [
    ({}, []), ({"E": 1e-5, "incE": 1e-9}, ["-E", "1e-5", "--incE", "1e-9"]), ({"cutoffs": "gathering"}, ["--cut_ga"]),
    ({"T": 5, "domT": 3, "bias_filter": False}, ["-T", "5", "--domT", "3", "--nobias"])])
def test_parts_and_merges_have_the_programs_bytes(folder, tmp_path, options, arguments):
    own = search_parts(folder, 3, "own", **options)
    run("search", "--quiet", "--device", "cpu", *arguments, "--part", "1-3/3", "--part-file",
        tmp_path / "program{}.hjpart", MODELS, folder / "t.hjdb")
    theirs = [tmp_path / f"program{part}.hjpart" for part in (1, 2, 3)]
    assert [hmmjit.part_info(p).content for p in own] == [hmmjit.part_info(p).content for p in theirs]
    # Parts of both are merged with each other, in any order.
    mixed = [theirs[2], own[0], theirs[1]]
    merged = hmmjit.merge_parts(mixed)
    whole = hmmjit.search(MODELS, folder / "t.hjdb", device="cpu", **options)
    outputs = {kind: tmp_path / kind for kind in KINDS}
    main = tmp_path / "main"
    run("merge", "-o", main, "-A", tmp_path / "stockholm",
        *(part for kind, path in outputs.items() for part in (f"--{kind}", path)), *mixed)
    for kind, path in [*outputs.items(), ("stockholm", tmp_path / "stockholm")]:
        expected = results_of(path.read_bytes())
        assert len(expected) > 5 or kind in ("a3m", "stockholm")
        for results in (merged, whole):
            assert results_of(results.report(kind)) == expected, kind
    report = results_of(merged.report("main"))
    assert report == results_of(whole.report("main"))
    heads = [results.report("main", header=True).partition(b"Query:")[0] for results in (merged, whole)]
    assert heads[0] == heads[1] and (len(heads[0].splitlines()) > 7 or not options)
    text = results_of(main.read_bytes())
    assert report == text[text.index(next(line for line in text if line.startswith(b"Query:"))):]
    for count in ("targets", "hits_reported", "domains_reported"):
        assert merged.statistics[count] == whole.statistics[count] > 5
    files = {kind: tmp_path / ("file." + kind) for kind in (*KINDS, "main", "html")}
    hmmjit.merge_parts_to_files(mixed, files, report={"date": "d"})
    for kind in KINDS:
        assert files[kind].read_bytes() == merged.report(kind, date="d"), kind
    assert results_of(files["main"].read_bytes())[1:] == report  # the header ends with an empty line
    assert b"<html" in files["html"].read_bytes()
    with pytest.raises(hmmjit.UsageError, match="an input is the same file"):
        hmmjit.merge_parts_to_files(mixed, {"tblout": mixed[0]})


def test_shares_of_the_models_have_the_programs_bytes(folder, tmp_path):
    models = tmp_path / "models.hmm"
    with open(MODELS, "rb") as file:
        models.write_bytes(file.read())
    database = folder / "t.hjdb"
    with pytest.raises(hmmjit.InputError, match="part index"):
        hmmjit.search_part(models, database, 1, 2, tmp_path / "no", model_parts=2, device="cpu")
    run("part", "index", models)
    own = []
    for model_part in (1, 2, 3):
        run("search", "--quiet", "--device", "cpu", "--part", "1-2/2", "--model-part", f"{model_part}/3", "--part-file",
            tmp_path / f"program{{}}_{model_part}.hjpart", models, database)
        for part, given in ((1, models), (2, hmmjit.Models.load(models))):
            own.append(tmp_path / f"own{part}_{model_part}.hjpart")
            info = hmmjit.search_part(given, database, part, 2, own[-1], model_part=model_part, model_parts=3,
                                      device="cpu")
            assert (info.part, info.parts, info.model_part, info.last_model_part, info.model_parts) == \
                (part, 2, model_part, model_part, 3)
            theirs = hmmjit.part_info(tmp_path / f"program{part}_{model_part}.hjpart")
            assert (info.content, info.first_model, info.last_model) == \
                (theirs.content, theirs.first_model, theirs.last_model)
    whole = hmmjit.search(MODELS, database, device="cpu")
    for kind in ("main", "tblout", "domtblout"):
        assert results_of(hmmjit.merge_parts(own).report(kind)) == results_of(whole.report(kind))
    many = [tmp_path / f"share{share}" for share in range(1, 10)]  # more shares than models: some are empty
    for share, path in enumerate(many, 1):
        hmmjit.search_part(hmmjit.Models.load(models), database, 1, 1, path, model_part=share, model_parts=9, device="cpu")
    assert results_of(hmmjit.merge_parts(many).report("domtblout")) == results_of(whole.report("domtblout"))
    del many[2]
    assert hmmjit.missing_parts(many) == "3"
    with pytest.raises(hmmjit.InputError):
        hmmjit.merge_parts(many)
    for wrong in ({"model_part": 0, "model_parts": 2}, {"model_part": 3, "model_parts": 2},
                  {"model_parts": 2, "cutoffs": "gathering", "cut_missing": "skip"}):
        with pytest.raises(hmmjit.UsageError):
            hmmjit.search_part(models, database, 1, 1, tmp_path / "no", device="cpu", **wrong)
    assert not (tmp_path / "no").exists()


def test_tables_by_target(folder, tmp_path):
    run("search", "--quiet", "--device", "cpu", "--as", "hmmscan", "--part", "1-2/2", "--part-file",
        tmp_path / "scan{}.hjpart", MODELS, folder / "t.hjdb")
    parts = [tmp_path / "scan1.hjpart", tmp_path / "scan2.hjpart"]
    run("merge", "-o", os.devnull, "--tblout", tmp_path / "t", "--domtblout", tmp_path / "d", *parts)
    own = search_parts(folder, 4, "scan", Z=5)
    for merged in (hmmjit.merge_parts(parts), hmmjit.merge_parts(own)):
        for kind, path in (("scan_tblout", "t"), ("scan_domtblout", "d")):
            expected = results_of((tmp_path / path).read_bytes())
            assert len(expected) > 20
            assert results_of(merged.report(kind)) == expected, kind


def test_joined_and_described(folder, tmp_path):
    parts = search_parts(folder, 4, "joined")
    whole = hmmjit.search_part(MODELS, folder / "t.hjdb", 1, 1, tmp_path / "whole", device="cpu")
    half = hmmjit.join_parts(parts[2:], tmp_path / "half")
    assert (half.part, half.last_part, half.parts) == (3, 4, 4)
    joined = hmmjit.join_parts([tmp_path / "half", parts[1], parts[0]], tmp_path / "joined")
    assert joined.content == whole.content == hmmjit.verify_part(tmp_path / "joined").content
    assert joined.first_target == 0 and joined.last_target == 300 and joined.last_model == 5
    assert joined.targets_reported == whole.targets_reported > 10 and joined.settings == whole.settings
    assert joined.settings["targets in the database"] == "300" if "targets in the database" in joined.settings \
        else "300" in joined.settings.values()
    text = run("part", "info", tmp_path / "joined").decode()
    assert joined.content in text
    assert hmmjit.missing_parts(parts) == ""
    assert hmmjit.missing_parts([parts[1]]) == "1,3-4"
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    for path in parts:
        os.link(path, shelf / path.name)
    assert hmmjit.merge_parts(shelf).statistics["targets"] == 300


def test_what_is_wrong_is_said(folder, tmp_path):
    parts = search_parts(folder, 2, "wrong")
    database = folder / "t.hjdb"
    with pytest.raises(hmmjit.InputError, match="part 1"):
        hmmjit.merge_parts(parts[1:])
    models, sequences = shutil.copy(MODELS, tmp_path / "m.hmm"), shutil.copy(TARGETS, tmp_path / "s.fasta")
    for call, path, text in ((lambda: hmmjit.search_part(models, database, 1, 2, database), database, "target database"),
                             (lambda: hmmjit.search_part(models, database, 1, 2, models), models, "profile file"),
                             (lambda: hmmjit.join_parts(parts, parts[0]), parts[0], "part"),
                             (lambda: hmmjit.build_database(sequences, sequences), sequences, "sequence file")):
        before = path.read_bytes()
        with pytest.raises(hmmjit.UsageError, match=f"this is the {text}; give the output another name"):
            call()
        assert path.read_bytes() == before
    with open(sequences, "rb") as file:
        for call in (lambda: hmmjit.search_part([models], database, 1, 2, models),
                     lambda: hmmjit.build_database([database, hmmjit.Targets([sequences])], sequences),
                     lambda: hmmjit.build_database(file, sequences)):
            with pytest.raises(hmmjit.UsageError, match="an input is the same file"):
                call()
    for suffix in (".h3m", ".h3i", ".hjidx", ".h3m.hjidx"):  # files that could stand for the models
        with pytest.raises(hmmjit.UsageError, match="give the output another name"):
            hmmjit.search_part(models, database, 1, 2, str(models) + suffix)
    for nameless in ("", "-"):
        with pytest.raises(hmmjit.UsageError, match="an output needs a file name"):
            hmmjit.join_parts(parts, nameless)
    with pytest.raises(hmmjit.UsageError):
        hmmjit.merge_parts([])
    with pytest.raises(hmmjit.InputError):
        hmmjit.part_info(database)
    for part, parts_, options in ((0, 2, {}), (3, 2, {}), (1, 2, {"seed": 0}), (1, 2, {"target_count": 3})):
        with pytest.raises(hmmjit.UsageError):
            hmmjit.search_part(MODELS, database, part, parts_, tmp_path / "no", device="cpu", **options)
    with pytest.raises(hmmjit.InputError):
        hmmjit.search_part(MODELS, TARGETS, 1, 2, tmp_path / "no")
    with pytest.raises(hmmjit.UsageError, match="sequences as queries"):
        hmmjit.search_part(hmmjit.Builder().build("MKVLAAGGHKLM"), database, 1, 2, tmp_path / "no")
    with pytest.raises(TypeError, match="did you mean 'E'"):
        hmmjit.search_part(MODELS, database, 1, 2, tmp_path / "no", evalue=1)
    damaged = bytearray(parts[0].read_bytes())
    damaged[len(damaged) // 2] ^= 0x11
    (tmp_path / "damaged").write_bytes(damaged)
    with pytest.raises(hmmjit.InputError):
        hmmjit.verify_part(tmp_path / "damaged")
    hmmjit.search_part(MODELS, database, 2, 2, tmp_path / "other", device="cpu", E=1)
    with pytest.raises(hmmjit.InputError):
        hmmjit.merge_parts([parts[0], tmp_path / "other"])
    with pytest.raises(hmmjit.Cancelled):
        hmmjit.search_part(MODELS, database, 1, 2, tmp_path / "no", progress=lambda _: False, interval=0.001, max=True,
                           threads=1)
    assert not (tmp_path / "no").exists()
