"""Documents agree with the code and with each other. cases/documents.txt has those that the program makes."""
import os
import re
import subprocess
import unittest

import scenario
from scenario import ok, read

DOCUMENTS = os.path.join(scenario.SOURCE, "docs")


def hmmjit(*arguments):
    done = ok(scenario.run([scenario.program] + list(arguments)))
    assert done.stderr == b"", done.stderr
    return done.stdout.decode("ascii")


class Documents(unittest.TestCase):
    def test_the_picture_of_rates_is_that_of_the_table(self):
        script = os.path.join(scenario.SOURCE, "benchmarks", "draw_rates.py")
        done = subprocess.run([script], capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        picture = read(os.path.join(DOCUMENTS, "images", "rates.svg"))
        self.assertEqual(picture, done.stdout, "run: benchmarks/draw_rates.py >docs/images/rates.svg")
        # The text of the picture in the README.
        readme = read(os.path.join(scenario.SOURCE, "README.md")).decode()
        shown = re.search(r"!\[([^\]]*)\]\(docs/images/rates.svg\)", readme).group(1)
        for seconds in re.findall(r"[0-9.]+ s", shown):
            self.assertIn(f" {seconds}", picture.decode().split("aria-label=")[1].split(">")[0])

    @unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch not installed")
    def test_options_that_hmmsearch_does_not_have_are_listed(self):
        def options(text):
            return set(re.findall(r"^  (-[^\s,]+)", text, re.MULTILINE))
        ours = options(hmmjit("search", "-h"))
        theirs = options(scenario.run(["hmmsearch", "-h"]).stdout.decode())
        self.assertGreater(len(theirs), 30)
        # --help is -h; 3.3.2 has the others, but does not show them.
        new = ours - theirs - {"--help", "--restrictdb_stkey", "--restrictdb_n", "--ssifile"}
        self.assertGreater(len(new), 15)
        text = read(os.path.join(DOCUMENTS, "differences.md")).decode()
        listed = re.search(r"\* (`--mem`.*?) are new\.", text, re.DOTALL).group(1)
        self.assertEqual(set(re.findall(r"`(-\S+)`", listed)), new)
        self.assertEqual(theirs - ours, {"--mpi", "--stall"} & theirs)

    def test_links_lead_to_documents_and_headings(self):
        seen = 0
        for path in documents():
            for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", read(path).decode()):
                if "://" in link or "/actions/" in link:  # of the repository's host
                    continue
                seen += 1
                there = os.path.join(os.path.dirname(path), link) if link else path
                self.assertTrue(os.path.exists(there), f"{path}: {link}")
                if anchor:
                    headings = re.findall(r"^#+ (.*)$", read(there).decode(), re.MULTILINE)
                    anchors = [re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings]
                    self.assertIn(anchor, anchors, f"{path}: {link}#{anchor}")
        self.assertGreater(seen, 30)

    def test_documents_that_sources_name_exist(self):
        seen = 0
        for path in sources(("engine", "cache", "tools", "kernel_templates", "benchmarks"),
                            (".cpp", ".hpp", ".h", ".cu", ".cuh", ".py")):
            # A reference may span two lines of a comment.
            text = re.sub(r"\n\s*(?://+|#)? *", " ", read(path).decode())
            for name, heading in re.findall(r"\b((?:docs/[a-z-]+|[A-Z]{4,})\.md)(?:, \"([^\"]+)\")?", text):
                seen += 1
                document = os.path.join(scenario.SOURCE, name)
                self.assertTrue(os.path.exists(document), f"{path}: {name}")
                if heading:
                    self.assertIn(heading.lower(), read(document).decode().lower(), f"{path}: {name}")
        self.assertGreater(seen, 15)

    def test_environment_variables_are_those_of_the_guide(self):
        used = variables_of("engine", "cache", "tools")
        self.assertGreater(len(used), 15)
        self.assertEqual(sorted(used), sorted(variables_listed("docs/guide.md")))

    def test_environment_variables_of_tests_are_listed(self):
        used = variables_of("tests", "benchmarks", "examples")
        given_by_ctest = set()
        for path in sources(("tests", "examples"), ("CMakeLists.txt",)):
            given_by_ctest |= set(re.findall(r"[\";](HMMJIT_\w+)=", read(path).decode()))
        used = {name for name in used if name.startswith("HMMJIT_")} - given_by_ctest \
            - set(variables_listed("docs/guide.md"))
        self.assertEqual(sorted(used), sorted(variables_listed("docs/testing.md")))

    def test_exit_statuses_are_the_same_everywhere(self):
        header = read(os.path.join(scenario.SOURCE, "engine/core/error.hpp")).decode()
        codes = {"0"} | set(re.findall(r"^  k\w+ = (\d+),", header, re.MULTILINE))
        self.assertEqual(len(codes), 9)
        codes = codes - {"130"} | {"128"}  # 128 + n: ended by a signal, Ctrl-C's among them
        rows = re.search(r"^\| status \| meaning \|\n\|---\|---\|\n((?:\|.*\n)+)",
                         read(os.path.join(DOCUMENTS, "guide.md")).decode(), re.MULTILINE).group(1)
        self.assertEqual(set(re.findall(r"^\| (\d+)(?: \+ n)? \| .* \|$", rows, re.MULTILINE)), codes)
        self.assertEqual(set(re.findall(r"^\.TP\n(\d+)(?: \+ n)?$", hmmjit("man"), re.MULTILINE)), codes)
        for name in ("docs/commands.md", "docs/differences.md"):
            listed = re.search(r"(?:Exit status|status of every command): (0 success,[^.]*)\.",
                               read(os.path.join(scenario.SOURCE, name)).decode().replace("\n", " "))
            outside = re.sub(r"\([^)]*\)", "", listed.group(1))
            self.assertEqual(set(re.findall(r"\b(\d+) ", outside)), codes, name)

    def test_labels_of_tests_are_listed(self):
        labels = {"scenario"}
        for path in sources(("tests", "examples"), ("CMakeLists.txt",)):
            for word in re.findall(r'LABELS "?([a-z0-9;]+)"?', read(path).decode()):
                labels |= set(word.split(";"))
        text = read(os.path.join(DOCUMENTS, "testing.md")).decode()
        table = re.search(r"^\| label \| .*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE).group(1)
        self.assertEqual(sorted(re.findall(r"^\| `([a-z0-9]+)` \|", table, re.MULTILINE)), sorted(labels))

    def test_promised_acceptance_tests_exist(self):
        defined = set()
        for path in sources(("tests",), (".cpp",)):
            for suite, case in re.findall(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", read(path).decode(), re.MULTILINE):
                defined.add((suite, case))
        suite, seen = "", 0
        table = read(os.path.join(DOCUMENTS, "acceptance-tests.md")).decode()
        for first, case in re.findall(r"`(\w*)\.([A-Z]\w+)`", table):
            suite, seen = first or suite, seen + 1
            self.assertIn((suite, case), defined)
        self.assertGreater(seen, 40)
        # Tests with their own CTest names.
        everything = "".join(read(path).decode() for path in sources(("tests",), ("CMakeLists.txt",)))
        for name in re.findall(r"`((?:install|c_api|clang)_\w+)`", table):
            self.assertRegex(everything, rf"\b{name}\b")


def documents():
    """Every document of the tree."""
    folders = ["", "docs", "docs/decisions", "kernel_templates"] + \
        [os.path.join("examples", name) for name in sorted(os.listdir(os.path.join(scenario.SOURCE, "examples")))]
    return [os.path.join(scenario.SOURCE, folder, name) for folder in folders
            if os.path.isdir(os.path.join(scenario.SOURCE, folder))
            for name in sorted(os.listdir(os.path.join(scenario.SOURCE, folder))) if name.endswith(".md")]


def sources(tops, endings):
    for top in tops:
        for folder, _, names in os.walk(os.path.join(scenario.SOURCE, top)):
            yield from (os.path.join(folder, name) for name in names if name.endswith(endings))


READ_VARIABLE = re.compile(r"""
    (?:getenv|get|absolute|value|environ\.get|environment)\s*\(?\s*["']([A-Z][A-Z0-9_]+)["']  # by its name
  | \{"(HMMJIT_\w+)",\ "--                                                   # a setting with its option
  | for\s\(const\ char\*\ variable\ :\ \{([^}]*)\}                           # one of several
  | environ\["(HMMJIT_\w+)"\]""", re.VERBOSE)


def variables_of(*tops):
    """The environment variables that programs in these folders read."""
    found = set()
    for path in sources(tops, (".cpp", ".hpp", ".py", ".sh")):
        for match in READ_VARIABLE.finditer(read(path).decode()):
            for text in filter(None, match.groups()):
                found |= set(re.findall(r"[A-Z][A-Z0-9_]{3,}", text))
    return found


def variables_listed(document):
    """The first column of the table of environment variables."""
    text = read(os.path.join(scenario.SOURCE, document)).decode()
    table = re.search(r"^\| variable \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE).group(1)
    return [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]


if __name__ == "__main__":
    scenario.main()
