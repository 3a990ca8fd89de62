"""Generated documents are current and complete, and their readers accept them."""
import os
import re
import shutil
import subprocess
import unittest

import scenario
from scenario import ScratchFolder, ok, read

DOCUMENTS = os.path.join(scenario.SOURCE, "docs")


def hmmjit(*arguments):
    done = ok(scenario.run([scenario.program] + list(arguments)))
    assert done.stderr == b"", done.stderr
    return done.stdout.decode("ascii")


def command_names():
    usage = scenario.run([scenario.program, "-h"]).stdout.decode()
    return re.findall(r"^  (\S+) ", usage.split("Commands:")[1], re.MULTILINE)


class Documents(ScratchFolder):
    def check_current(self, name, *arguments):
        made = hmmjit(*arguments)
        with open(os.path.join(DOCUMENTS, name), encoding="ascii") as file:
            if file.read() != made:
                self.fail(f"docs/{name} is not current; run: hmmjit {' '.join(arguments)} >"
                          f"docs/{name}")

    def test_command_reference_is_current(self):
        self.check_current("commands.md", "man", "--markdown")

    def test_kernel_catalogue_is_current(self):
        self.check_current("kernels.md", "plan", "--catalogue")

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

    def test_every_option_of_the_help_is_everywhere(self):
        shown = set(re.findall(r"^  (-[^\s,]+)", hmmjit("search", "-h"), re.MULTILINE))
        self.assertGreater(len(shown), 40)
        texts = {"bash": hmmjit("completions", "bash")}
        texts["man"] = hmmjit("man", "search").replace("\\-", "-")
        texts["reference"] = hmmjit("man", "--markdown")
        for name, text in texts.items():
            for option in shown:
                self.assertRegex(text, r"[ '`B]" + re.escape(option) + r"[ '`=\[\\]",
                                 f"{option} in {name}")

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

    @unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch not installed")
    def test_abbreviations_of_hmmer_are_accepted(self):
        for program in ("hmmsearch", "hmmscan", "phmmer", "jackhmmer", "hmmbuild", "hmmalign", "nhmmer", "nhmmscan"):
            command = program.removeprefix("hmm")
            theirs = re.findall(r"^  (--\S+)", scenario.run([program, "-h"]).stdout.decode(), re.MULTILINE)
            self.assertGreater(len(theirs), 6)
            for option in set(theirs) - {"--mpi", "--stall"}:
                shortest = next(option[:n] for n in range(3, len(option) + 1)
                                if b"ambiguous" not in scenario.run([program, option[:n]]).stdout)
                said = scenario.run([scenario.program, command, shortest]).stderr.decode()
                self.assertNotRegex(said, "ambiguous|no such option", f"{program} {shortest}")

    def test_every_command_has_a_page(self):
        names = command_names()
        self.assertIn("db", names)
        overview = hmmjit("man").replace("\\-", "-")
        for name in names:
            page = hmmjit("man", name)
            self.assertTrue(page.startswith(".TH HMMJIT\\-" + name.upper() + " 1 "), page[:60])
            self.assertIn("hmmjit-" + name, overview)
        done = scenario.run([scenario.program, "man", "nothing"])
        self.assertEqual(done.returncode, 2)

    def test_manual_pages_are_well_formed(self):
        pages = {name: self.path(name + ".1") for name in [""] + command_names()}
        for name, path in pages.items():
            self.write(path, hmmjit(*(["man", name] if name else ["man"])))
        if shutil.which("groff"):
            for path in pages.values():
                done = scenario.run(["groff", "-man", "-ww", "-Tascii", "-rLL=100n", path])
                self.assertEqual((done.returncode, done.stderr), (0, b""), path)
                plain = re.sub(rb".\x08|\x1b\[[0-9]*m", b"", done.stdout)  # bold, either way
                self.assertIn(b"EXIT STATUS", plain)
        if shutil.which("mandoc"):
            for path in pages.values():
                done = scenario.run(["mandoc", "-T", "lint", "-W", "error", path])
                self.assertEqual((done.returncode, done.stdout), (0, b""), path)

    def offered(self, *words):
        """Bash's completions of a command line."""
        script = self.path("hmmjit.bash")
        if not os.path.exists(script):
            self.write(script, hmmjit("completions", "bash"))
        quoted = " ".join(f"'{word}'" for word in words)
        code = (f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _hmmjit; "
                "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "--norc", "-uc", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_bash_completes(self):
        self.assertEqual(self.offered("hmmjit", "se"), ["search", "serve"])
        self.assertEqual(set(self.offered("hmmjit", "")) - {"--help", "--version"},
                         set(command_names()))
        self.assertEqual(self.offered("hmmjit", "search", "--tb"), ["--tblout"])
        self.assertIn("-E", self.offered("hmmjit", "search", "-"))
        self.assertEqual(self.offered("hmmjit", "search", "--tblout", "x", "--dom"),
                         ["--domtblout", "--domE", "--domT", "--domZ", "--domfasta"])
        self.assertEqual(self.offered("hmmjit", "search", "mod"), [])  # a file: bash's own business
        self.assertEqual(self.offered("hmmjit", "db", "b"), ["build"])
        self.assertEqual(set(self.offered("hmmjit", "db", "build", "--al")), {"--alphabet"})
        self.assertEqual(self.offered("hmmjit", "db", "build", "--alphabet", "d"), ["dna"])
        self.assertEqual(set(self.offered("hmmjit", "plan", "--emit", "")),
                         {"source", "ptx", "cubin", "sass", "log"})
        self.assertIn("--repair", self.offered("hmmjit", "cache", "verify", "--"))
        self.assertNotIn("--repair", self.offered("hmmjit", "cache", "stats", "--"))
        self.assertEqual(self.offered("hmmjit", "completions", "b"), ["bash"])
        # Positional values, lists of values, and values after a '='.
        self.assertEqual(self.offered("hmmjit", "man", "se"), ["search", "serve"])
        self.assertEqual(self.offered("hmmjit", "plan", "--device", "H2"), ["H200"])
        self.assertEqual(self.offered("hmmjit", "plan", "--device", "H200,sm_9"), ["H200,sm_90"])
        self.assertEqual(self.offered("hmmjit", "plan", "--device", "=", "T"), ["T4"])
        self.assertIn("H100", [value.split("-")[0] for value in self.offered("hmmjit", "plan", "--device", "=")])
        self.assertEqual(set(self.offered("hmmjit", "plan", "--stage", "e")), {"ensemble", "envelope"})
        self.assertEqual(set(self.offered("hmmjit", "plan", "--policy", "")), {"default", "cudampfpp"})
        self.assertEqual(self.offered("hmmjit", "search", "--tformat", "em"), ["embl"])
        self.assertEqual(self.offered("hmmjit", "search", "--as", ""), ["hmmscan", "hmmsearch"])
        self.assertEqual(self.offered("hmmjit", "cache", "warm", "--target", "sm_8,sm_9"), ["sm_8,sm_90"])

    def test_values_that_are_offered_are_taken(self):
        """Every offered value is accepted."""
        for option, arguments in (("--device", ()), ("--stage", ("--device", "H200"))):
            for value in set(self.offered("hmmjit", "plan", option, "")) - {"gpu"}:
                done = scenario.run([scenario.program, "plan", "--length", "100", "--summary", *arguments, option, value])
                self.assertNotEqual(done.returncode, 2, (option, value, done.stderr))
        targets = self.path("targets.fasta")
        for value in self.offered("hmmjit", "search", "--tformat", ""):
            done = scenario.run([scenario.program, "search", "--tformat", value, "-", targets], data=b"")
            self.assertNotIn(b"sequence format", done.stderr, value)
        self.assertIn("ncbi", self.offered("hmmjit", "search", "--tformat", ""))

    def test_links_between_documents_lead_somewhere(self):
        seen = 0
        for path in documents():
            text = read(path).decode()
            for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
                if "://" not in link and "/actions/" not in link:  # of the repository's host
                    seen += 1
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(path), link)),
                                    f"{path}: {link}")
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

    def test_links_into_documents_find_their_heading(self):
        for path in documents():
            for link, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", read(path).decode()):
                if "://" in link:
                    continue
                there = os.path.join(os.path.dirname(path), link) if link else path
                headings = re.findall(r"^#+ (.*)$", read(there).decode(), re.MULTILINE)
                anchors = [re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings]
                self.assertIn(anchor, anchors, f"{path}: {link}#{anchor}")

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
