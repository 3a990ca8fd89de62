"""Common code of the scenario tests: the program under test, test data, comparison of outputs.

Every script takes the program as its first argument. Recorded data is in $HMMJIT_SHARED, or in a folder "shared" next
to or above the source tree; without it, tests that need it are skipped.
"""
import gzip
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = "/usr/share/doc/hmmer/examples"
SKIPPED = 77  # exit status that ctest shows as "skipped"
SEED = int(os.environ.get("HMMJIT_TEST_SEED", random.SystemRandom().randrange(1, 2**31)))

program = None


def shared_folder():
    candidates = [os.environ.get("HMMJIT_SHARED", ""), os.path.join(SOURCE, "..", "shared"),
                  os.path.join(SOURCE, "..", "..", "shared")]
    for folder in candidates:
        if folder and os.path.isdir(os.path.join(folder, "data")):
            return os.path.abspath(folder)
    return None


def replay(script, *options, only):
    """Replays the recorded runs whose names match `only` with a script of the recorded data; prints the script's last line."""
    if shared_folder() is None:
        raise unittest.SkipTest("recorded runs (shared/data) are not here; set HMMJIT_SHARED")
    done = ok(run([sys.executable, os.path.join(shared_folder(), "tools", script), *options, "--only", *only]))
    print(done.stdout.decode().strip().split("\n")[-1])


def hmmsearch_missing():
    return shutil.which("hmmsearch") is None or shutil.which("hmmemit") is None \
        or not os.path.isdir(EXAMPLES)


def run(arguments, stdin=None, data=None, timeout=600):
    """Runs a command; returns the finished process with bytes in stdout and stderr. `data`: standard input."""
    source = {"input": data} if data is not None else {"stdin": stdin}
    return subprocess.run(arguments, timeout=timeout, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **source)


def search(arguments, **keywords):
    return run([program, "search", "--quiet"] + arguments, **keywords)


def hmmsearch(arguments, **keywords):
    return run(["hmmsearch", "--cpu", "0"] + arguments, **keywords)


def result_lines(text):
    """The lines without comments, which name programs, files and times."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    lines = [line for line in text.split("\n") if not line.startswith("#")]
    if "Query:" in text:  # the blank line after the header is part of it
        while lines and not lines[0]:
            lines.pop(0)
    return lines


def comparable(name, text):
    """The lines of an output that do not depend on the program, for an option or file called `name`."""
    if name.endswith(("hmm", "hmmout")):
        return [line for line in text.decode().split("\n") if not line.startswith(("HMMER3/f", "DATE", "COM"))]
    if name == "A" or name.endswith(".sto"):  # annotation begins with '#'; the author is the program
        return [line for line in text.decode().split("\n") if not line.startswith("#=GF AU")]
    return result_lines(text)


def ok(done):
    """The finished process, which must have succeeded."""
    assert done.returncode == 0, (done.args, done.returncode, (done.stdout or b"")[-3000:], done.stderr)
    return done


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    """Writes text or bytes to a file; returns its path."""
    with open(path, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
    return path


def first_difference(want, got):
    for number, (a, b) in enumerate(zip(want, got)):
        if a != b:
            return f"line {number}:\n  want {a!r}\n  got  {b!r}"
    return f"{len(want)} lines wanted, {len(got)} got"


def printed(single, digits):
    """A number of single precision as C prints it: 42.85, the shortest text of the nearest one below, is 42.8."""
    return "%.*f" % (digits, struct.unpack("f", struct.pack("f", float(single)))[0])


def example_model(name, folder):
    """Path of a model of the hmmer-examples package, unpacked into `folder` if needed."""
    for part in ("tutorial", "testsuite"):
        plain = os.path.join(EXAMPLES, part, name)
        if os.path.exists(plain):
            return plain
        if os.path.exists(plain + ".gz"):
            target = os.path.join(folder, name)
            if not os.path.exists(target):
                with gzip.open(plain + ".gz", "rb") as source, open(target, "wb") as sink:
                    shutil.copyfileobj(source, sink)
            return target
    raise FileNotFoundError(name)


BACKGROUND = dict(zip("ACDEFGHIKLMNPQRSTVWY", (
    .0787945, .0151600, .0535222, .0668298, .0397062, .0695071, .0229198, .0590092, .0594422,
    .0963728, .0237718, .0414386, .0482904, .0395639, .0540978, .0683364, .0540687, .0673417,
    .0114135, .0304133)))


def fasta_records(text):
    records = []
    for chunk in ("\n" + text).split("\n>")[1:]:
        head, _, body = chunk.partition("\n")
        name, _, description = head.partition(" ")
        records.append([name, description.strip(), body.replace("\n", "")])
    return records


def write_fasta(path, records, width=60):
    with open(path, "w") as file:
        for name, description, residues in records:
            file.write(f">{name} {description}\n" if description else f">{name}\n")
            for at in range(0, len(residues), width):
                file.write(residues[at:at + width] + "\n")


def write_embl(path, records):
    """Like write_fasta, but with accessions."""
    with open(path, "w") as file:
        for number, (name, description, residues) in enumerate(records):
            file.write(f"ID   {name}   Reviewed;   {len(residues)} AA.\n")
            if number % 3:
                file.write(f"AC   Q{number:05d};\n")
            if description:
                file.write(f"DE   {description}\n")
            file.write(f"SQ   SEQUENCE   {len(residues)} AA;\n")
            for at in range(0, len(residues), 60):
                file.write("     " + residues[at:at + 60] + "\n")
            file.write("//\n")


def emitted_targets(models, seed, per_model, decoys):
    """Targets with one or several emitted domains between random residues, and decoys without."""
    rng = random.Random(seed)
    letters, weights = list(BACKGROUND), list(BACKGROUND.values())

    def noise(length):
        return "".join(rng.choices(letters, weights, k=length))

    domains = []
    for model in models:
        made = run(["hmmemit", "--seed", str(rng.randrange(1, 2**31)), "-N", str(per_model), model])
        assert made.returncode == 0, made.stderr
        domains.append([record[2].upper() for record in fasta_records(made.stdout.decode())])
    records = []
    for number in range(per_model * len(models)):
        kind = number % len(models)
        parts = [noise(rng.randrange(0, 120)), rng.choice(domains[kind])]
        while rng.random() < 0.35:
            parts += [noise(rng.randrange(0, 60)), rng.choice(domains[rng.randrange(len(models))])]
        parts.append(noise(rng.randrange(0, 120)))
        residues = list("".join(parts))
        for _ in range(len(residues) // 50):  # mutations
            residues[rng.randrange(len(residues))] = rng.choice(letters + ["X", "B", "U"])
        description = " ".join(["emitted", "protein"] * rng.randrange(0, 9))
        records.append([f"emitted{number}_{'x' * rng.randrange(12)}", description,
                        "".join(residues)])
    for number in range(decoys):
        records.append([f"decoy{number}", "random" if number % 2 else "",
                        noise(rng.randrange(1, 500))])
    rng.shuffle(records)
    return records


def snakemake():
    """Snakemake's program: in $HMMJIT_TEST_SNAKEMAKE (by tools/install_packages.sh --snakemake), or in PATH; None if it is not
    installed."""
    own = os.environ.get("HMMJIT_TEST_SNAKEMAKE")
    return (own and shutil.which("snakemake", path=os.path.join(own, "bin"))) or shutil.which("snakemake")


def main():
    """Runs the calling module's tests on the program given as first argument."""
    global program
    if len(sys.argv) < 2:
        print(f"usage: {sys.argv[0]} PROGRAM [unittest arguments]")
        sys.exit(2)
    program = os.path.abspath(sys.argv[1])
    print(f"random seed {SEED} (HMMJIT_TEST_SEED repeats it)", flush=True)
    module = sys.modules["__main__"]
    sys.modules["scenario"].program = program
    suite = unittest.main(module=module, argv=[sys.argv[0]] + sys.argv[2:], exit=False,
                          verbosity=1)
    outcome = suite.result
    if not outcome.wasSuccessful():
        sys.exit(1)
    for _, reason in outcome.skipped:
        print("SKIPPED:", reason)
    if outcome.skipped and len(outcome.skipped) == outcome.testsRun:
        sys.exit(SKIPPED)
    sys.exit(0)


class ScratchFolder(unittest.TestCase):
    """A test with a temporary folder."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hmmjit-scenario-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        return write(self.path(name), data)

    def join_models(self, paths, name="library.hmm"):
        """A file of these models in one format version."""
        return self.write(name, b"".join(run(["hmmconvert", path]).stdout for path in paths))

    def output_options(self, label, outputs):
        """Options for these outputs in files LABEL.OUTPUT."""
        return [word for output in outputs
                for word in ("-" * (1 if len(output) == 1 else 2) + output, self.path(f"{label}.{output}"))]

    def compare_outputs(self, names, context):
        """Compares the files want.NAME and got.NAME."""
        for name in names:
            expected, actual = (comparable(name, read(self.path(f"{label}.{name}"))) for label in ("want", "got"))
            if expected != actual:
                self.fail(f"{context} {name}: {first_difference(expected, actual)}")


class SharedInputs(ScratchFolder):
    """Tests whose folder holds the same files at the beginning of each. `make_inputs` makes them, and attributes that name
    them, once for the class."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        top = tempfile.mkdtemp(prefix="hmmjit-scenario-")
        cls.addClassCleanup(shutil.rmtree, top, ignore_errors=True)
        cls.folder, cls.inputs_kept = os.path.join(top, "folder"), os.path.join(top, "kept")
        os.mkdir(cls.folder)
        maker = cls("make_inputs")
        known = set(vars(maker))
        maker.make_inputs()
        for name in vars(maker).keys() - known:
            setattr(cls, name, getattr(maker, name))
        os.rename(cls.folder, cls.inputs_kept)

    def setUp(self):
        shutil.copytree(self.inputs_kept, self.folder, symlinks=True)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
