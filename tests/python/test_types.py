"""Types of the Python package, as editors and mypy see them. Run by run_pytest.py, which sets the paths."""
import importlib.metadata
import os
import subprocess
import sys
import tomllib

import pytest

import hmmjit

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_types_are_strict(tmp_path):
    """mypy --strict over the package and the examples, and over a user's program."""
    pytest.importorskip("mypy", reason="SKIPPED, NO TYPE CHECKED: mypy is not installed "
                                       "(tools/install_packages.sh --readers)")
    version = tuple(int(part) for part in importlib.metadata.version("mypy").split(".")[:2])
    if version < (1, 7):
        pytest.skip("SKIPPED, NO TYPE CHECKED: mypy before 1.7 does not know how options are typed")
    user = tmp_path / "user.py"
    user.write_text("import hmmjit\n"
                    "results = hmmjit.search('m.hmm', 't.fa', E=1e-3, memory='2G')\n"
                    "best: hmmjit.Hit = results[0][0]\n"
                    "score: float = best.best_domain.score\n"
                    "names: list[str] = [hit.name for result in results for hit in result.reported]\n"
                    "models = hmmjit.Models('m.hmm')\n"
                    "models[0].gathering, models[0].noise = (25.0, 20.0), None\n"
                    "models[0].name = models[0].accession = models[0].description = 'x'\n"
                    "for [round] in hmmjit.IterativeSearch('q.fa', 't.fa', incE=1e-5):\n"
                    "    rows: int = len(round.msa)\n")
    # The build keeps mypy's cache of the package and of Python's own types.
    check = [sys.executable, "-m", "mypy", "--config-file", os.path.join(SOURCE, "pyproject.toml"), "--cache-dir",
             os.path.join(os.path.dirname(os.environ["HMMJIT_TEST_INPUTS"]), "mypy_cache")]
    with open(os.path.join(SOURCE, "pyproject.toml"), "rb") as file:  # a command line's files replace these
        own = tomllib.load(file)["tool"]["mypy"]["files"]
    checked = subprocess.run([*check, *own, str(user)], capture_output=True, text=True, cwd=SOURCE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    user.write_text("import hmmjit\nhmmjit.search('m', 't', evalue=1)\nhmmjit.search('m', 't')[0][0].nam\n")
    wrong = subprocess.run(check + [str(user)], capture_output=True, text=True, cwd=SOURCE)
    assert wrong.returncode == 1 and wrong.stdout.count("error:") == 2, wrong.stdout
    assert os.path.exists(os.path.join(os.path.dirname(hmmjit.__file__), "py.typed"))
