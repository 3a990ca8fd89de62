#!/usr/bin/env python3
"""The recipes in tools/packaging: versions, syntax, and those that can be run here.

usage: recipes_test.py PROGRAM SOURCE_DIR

Linters are looked for in the Python of $HMMJIT_TEST_PACKAGING
(tools/install_packages.sh --packaging), then in PATH.
"""
import ast
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "scenario"))
import scenario  # noqa: E402
from scenario import ScratchFolder, example_model, read, result_lines, snakemake  # noqa: E402

# Where a file repeats the version, and how.
VERSIONS = {
    "CITATION.cff": r"^version: (\S+)$",
    "tools/packaging/conda/meta.yaml": r'set version = "([^"]+)"',
    "tools/packaging/conda/recipe.yaml": r'^  version: "([^"]+)"$',
    "tools/packaging/modulefiles/hmmjit.lua": r"Version: ([0-9.]+)",
    "tools/packaging/nf-core/hmmjit/search/environment.yml": r"hmmjit=([0-9.]+)",
    "tools/packaging/nf-core/hmmjit/search/main.nf": r'container "hmmjit:([0-9.]+)"',
    "tools/packaging/snakemake/hmmjit/search/environment.yaml": r"hmmjit =([0-9.]+)",
}


def path_of(name):
    return os.path.join(scenario.SOURCE, name)


def text_of(name):
    return read(path_of(name)).decode("utf-8")


def linter(name):
    own = os.path.join(os.environ.get("HMMJIT_TEST_PACKAGING", ""), "bin", name)
    return own if os.access(own, os.X_OK) else shutil.which(name)


def recipes():
    for where, _, names in os.walk(path_of("tools/packaging")):
        for name in names:
            yield os.path.relpath(os.path.join(where, name), scenario.SOURCE)


class Recipes(ScratchFolder):
    def test_one_version(self):
        version = re.search(r"project\(hmmjit VERSION ([0-9.]+)", text_of("CMakeLists.txt")).group(1)
        for name, pattern in VERSIONS.items():
            found = re.findall(pattern, text_of(name), re.MULTILINE)
            self.assertEqual(set(found), {version}, name)

    def test_python(self):
        seen = 0
        for name in recipes():
            if name.endswith(".py"):
                ast.parse(text_of(name), name)
                seen += 1
        self.assertEqual(seen, 2)

    def test_yaml(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("PyYAML is not installed")
        for name in recipes():
            if not name.endswith((".yaml", ".yml")):
                continue
            text = text_of(name)
            if name.startswith("tools/packaging/conda/"):  # a template of Jinja before it is YAML
                text = re.sub(r"\{%.*?%\}\n?", "", text)
                text = re.sub(r"\{\{.*?\}\}", "x", text)
            self.assertIsInstance(yaml.safe_load(text), dict, name)

    def findings(self, command):
        done = scenario.run(command)
        self.assertEqual((done.returncode, done.stdout.decode()), (0, ""), done.stderr.decode())

    @unittest.skipIf(linter("yamllint") is None, "yamllint is not installed (tools/install_packages.sh --packaging)")
    def test_yaml_style(self):
        rules = "{extends: default, rules: {line-length: {max: 120}, document-start: disable}}"
        files = [path_of(name) for name in recipes() if name.endswith((".yaml", ".yml")) and "/conda/" not in name]
        self.assertGreater(len(files), 3)
        self.findings([linter("yamllint"), "--strict", "-d", rules] + files)

    @unittest.skipIf(linter("hadolint") is None, "hadolint is not installed (tools/install_packages.sh --packaging)")
    def test_dockerfiles(self):
        # DL3008 wants a version of each Debian package, which the release of Debian in BASE fixes.
        files = [path_of(name) for name in recipes() if "Dockerfile" in name]
        self.assertEqual(len(files), 2)
        self.findings([linter("hadolint"), "--ignore", "DL3008"] + files)

    @unittest.skipIf(linter("shellcheck") is None, "ShellCheck is not installed (tools/install_packages.sh --packaging)")
    def test_shell(self):
        files = [".ci/run"]
        for top in ("examples", "tests", "tools"):
            for where, _, names in os.walk(path_of(top)):
                files += [os.path.join(where, name) for name in names if name.endswith((".sh", ".sbatch"))]
        self.assertGreater(len(files), 12)
        self.findings([linter("shellcheck")] + [path_of(name) for name in files])

    LMOD = "/usr/share/lmod/lmod/libexec/lmod"

    @unittest.skipUnless(os.path.exists(LMOD), "Lmod is not installed (Debian's package lmod)")
    def test_module_file(self):
        version = re.search(r"Version: ([0-9.]+)", text_of("tools/packaging/modulefiles/hmmjit.lua")).group(1)
        where = self.path("modulefiles/hmmjit")
        os.makedirs(where)
        shutil.copy(path_of("tools/packaging/modulefiles/hmmjit.lua"), os.path.join(where, version + ".lua"))
        done = subprocess.run([self.LMOD, "bash", "load", "hmmjit/" + version], capture_output=True, text=True,
                              env=dict(os.environ, MODULEPATH=os.path.dirname(where)))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name, folder in (("PATH", "bin"), ("LD_LIBRARY_PATH", "lib"), ("MANPATH", "share/man")):
            self.assertRegex(done.stdout, rf"(?m)^{name}=/opt/hmmjit/{re.escape(version)}/{folder}[:;\\]", name)

    @unittest.skipIf(shutil.which("apt-cache") is None, "no list of Debian's packages")
    def test_packages_of_containers_exist(self):
        known = set(scenario.run(["apt-cache", "pkgnames"]).stdout.decode().split())
        if len(known) < 10000:
            self.skipTest("apt has no list of Debian's packages")
        for name in ("Dockerfile", "Dockerfile.cuda", "hmmjit.def"):
            text = text_of(f"tools/packaging/containers/{name}").replace("\\\n", " ")
            wanted = re.findall(r"apt-get install (.*?)(?:&&|\n)", text)
            self.assertTrue(wanted, name)
            packages = {word for words in wanted for word in words.split() if not word.startswith("-")}
            self.assertEqual(packages - known, set(), name)

    def inputs(self):
        model = example_model("globins4.hmm", self.folder)
        targets = self.path("targets.fasta")
        scenario.write_fasta(targets, scenario.emitted_targets([model], 7, per_model=10, decoys=40))
        return model, targets

    @unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
    def test_the_command_of_the_nextflow_module(self):
        model, targets = self.inputs()
        script = re.search(r'script:.*?"""(.*?)"""', text_of("tools/packaging/nf-core/hmmjit/search/main.nf"), re.S).group(1)
        values = {"args": "-E 0.001", "task.cpus": "2", "memory": "--mem 400M", "prefix": "x", "alignment": "-A x.sto.gz",
                  "target": "--tblout x.tbl.gz", "domain": "--domtblout x.domtbl.gz", "hmmfile": model, "seqdb": targets}
        command = re.sub(r"\$\{([^}]*)\}", lambda match: values[match.group(1)], script.replace("\\\\", "\\"))
        path = os.path.dirname(scenario.program) + os.pathsep + os.environ["PATH"]
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=self.folder, capture_output=True,
                              env=dict(os.environ, PATH=path))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.startswith("x.")),
                         ["x.domtbl.gz", "x.sto.gz", "x.tbl.gz", "x.txt.gz"])

    @unittest.skipIf(snakemake() is None, "Snakemake is not installed (tools/install_packages.sh --snakemake)")
    @unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
    def test_the_wrapper_for_snakemake(self):
        model, targets = self.inputs()
        wrapper = self.path("wrapper")
        shutil.copytree(path_of("tools/packaging/snakemake/hmmjit/search"), wrapper)
        where = os.path.join(wrapper, "test")
        shutil.copy(model, os.path.join(where, "models.hmm"))
        shutil.copy(targets, where)
        path = os.path.dirname(scenario.program) + os.pathsep + os.environ["PATH"]
        done = subprocess.run([snakemake(), "--cores", "2", "out/hits.tbl"], cwd=where, capture_output=True,
                              env=dict(os.environ, PATH=path))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        for option, name in (("--tblout", "hits.tbl"), ("--domtblout", "domains.tbl")):
            scenario.hmmsearch(["-E", "0.001", "-o", os.devnull, option, self.path(name), model, targets])
            want = result_lines(read(self.path(name)))
            self.assertGreater(len(want), 5)
            self.assertEqual(result_lines(read(os.path.join(where, "out", name))), want)


if __name__ == "__main__":
    sys.argv.pop(2)
    scenario.main()
