#!/usr/bin/env python3
"""The recipes in tools/packaging: versions, linters, and Debian's packages that they name.

usage: recipes_test.py PROGRAM SOURCE_DIR

Linters are looked for in the Python of $HMMJIT_TEST_PACKAGING
(tools/install_packages.sh --packaging), then in PATH.
"""
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "scenario"))
import scenario  # noqa: E402
from scenario import ScratchFolder, read  # noqa: E402

# The files that repeat the version, with its pattern.
VERSIONS = {
    "CITATION.cff": r"^version: (\S+)$",
    "tools/packaging/conda/meta.yaml": r'set version = "([^"]+)"',
    "tools/packaging/conda/recipe.yaml": r'^  version: "([^"]+)"$',
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

    def findings(self, command):
        done = scenario.run(command)
        self.assertEqual((done.returncode, done.stdout.decode()), (0, ""), done.stderr.decode())

    @unittest.skipIf(linter("hadolint") is None, "hadolint is not installed (tools/install_packages.sh --packaging)")
    def test_dockerfiles(self):
        # DL3008 demands versions of Debian packages; the release of Debian in BASE determines them.
        files = [path_of(name) for name in recipes() if "Dockerfile" in name]
        self.assertEqual(len(files), 2)
        self.findings([linter("hadolint"), "--ignore", "DL3008"] + files)

    @unittest.skipIf(linter("shellcheck") is None, "ShellCheck is not installed (tools/install_packages.sh --packaging)")
    def test_shell(self):
        files = [".ci/run", ".ci/check_changes"]
        for top in ("examples", "tests", "tools"):
            for where, _, names in os.walk(path_of(top)):
                files += [os.path.join(where, name) for name in names if name.endswith((".sh", ".sbatch"))]
        self.assertGreater(len(files), 12)
        self.findings([linter("shellcheck")] + [path_of(name) for name in files])

    def test_refusals(self):
        """Scripts that cannot do what they are asked for do nothing and say so."""
        for name, argument, status in (("tools/sanitize.sh", "memory", 2), (".ci/check_changes", "no-such-commit", 1)):
            self.assertEqual(scenario.run([path_of(name), argument]).returncode, status, name)

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


if __name__ == "__main__":
    sys.argv.pop(2)
    scenario.main()
