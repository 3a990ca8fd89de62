"""Runs the files of examples/cluster under Slurm (on this machine), Snakemake and GNU parallel.

Tests of programs that are not installed are skipped.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))

import one_machine_slurm  # noqa: E402
import scenario  # noqa: E402
from scenario import ScratchFolder, example_model, ok, read, snakemake  # noqa: E402

EXAMPLES = os.path.join(scenario.SOURCE, "examples", "cluster")
MODELS = ["fn3.hmm", "globins4.hmm", "RRM_1.hmm", "Pkinase.hmm"]
SEED = 12
RESULTS = {"report.txt": "-o", "targets.tbl": "--tblout", "domains.tbl": "--domtblout"}
VOLATILE = (b"# hmmjit ", b"# CPU time:", b"# Mc/sec:", b"# Date:", b"# Current dir:",
            b"# Program:", b"# number of worker threads:", b"# Option settings:", b"# output ",
            b"# per-")


def comparable(path):
    return [line for line in read(path).split(b"\n") if not line.startswith(VOLATILE)]


def slurm_executor():
    """True if Snakemake is installed with it."""
    if snakemake() is None:
        return False
    python = os.path.join(os.path.dirname(snakemake()), "python3")
    return subprocess.run([python, "-c", "import snakemake_executor_plugin_slurm"], capture_output=True).returncode == 0


@unittest.skipIf(scenario.hmmsearch_missing(), "hmmsearch, hmmemit or hmmer-examples not installed")
class Cluster(ScratchFolder):
    @classmethod
    def setUpClass(cls):
        cls.inputs, cls.started = tempfile.mkdtemp(prefix="hmmjit cluster "), None
        cls.addClassCleanup(shutil.rmtree, cls.inputs, ignore_errors=True)
        models = [example_model(name, cls.inputs) for name in MODELS]
        cls.library = os.path.join(cls.inputs, "models.hmm")
        with open(cls.library, "wb") as library:
            for path in models:
                library.write(scenario.run(["hmmconvert", path]).stdout)
        records = scenario.emitted_targets(models, SEED, per_model=60, decoys=300)
        scenario.write_fasta(os.path.join(cls.inputs, "targets.fasta"), records)
        cls.targets = os.path.join(cls.inputs, "targets.hjdb")
        done = ok(scenario.run([scenario.program, "db", "build", "-o", cls.targets, os.path.join(cls.inputs, "targets.fasta")]))
        cls.whole = os.path.join(cls.inputs, "whole")
        os.mkdir(cls.whole)
        arguments = [option for name, option in RESULTS.items()
                     for option in (option, os.path.join(cls.whole, name))]
        ok(scenario.search(arguments + [cls.library, cls.targets]))

    @classmethod
    def slurm(cls):
        """One for all tests, with the first that asks for it."""
        if cls.started is None:
            folder = tempfile.mkdtemp(prefix="hmmjit-slurm-")  # Slurm's own paths must have no blanks
            cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
            cls.started = one_machine_slurm.Slurm(os.path.join(folder, "slurm"))
            cls.addClassCleanup(cls.started.stop)
        return cls.started

    def settings(self, parts, **more):
        return dict(os.environ, HMMJIT=scenario.program, PARTS=str(parts), MODELS=self.library,
                    TARGETS=self.targets, MEMORY="200M", CPUS="1", **more)

    def check_results(self):
        for name in RESULTS:
            self.assertEqual(comparable(self.path(f"results/{name}")),
                             comparable(os.path.join(self.whole, name)), name)

    def test_parallel(self):
        ok(subprocess.run([os.path.join(EXAMPLES, "parallel.sh")], cwd=self.folder,
                          env=self.settings(5, JOBS="2"), capture_output=True, timeout=300))
        self.check_results()

    @unittest.skipIf(one_machine_slurm.missing(), f"Slurm: {one_machine_slurm.missing()}")
    def test_slurm_array(self):
        slurm = self.slurm()
        # A stand-in for hmmjit that requeues the first run of task 2 and kills that of task 5 during their
        # searches, and passes on all other calls.
        stand_in = self.path("hmmjit")
        with open(stand_in, "w") as file:
            file.write(f"""#!/bin/bash
task=${{SLURM_ARRAY_TASK_ID:-}} run=${{SLURM_RESTART_COUNT:-0}}
echo "task $task run $run" >>{self.path("log")}
if [ "$task" = 2 ] && [ "$run" = 0 ]; then
  {scenario.program} "$@" & child=$!
  kill -STOP $child
  scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_2"
  wait
  exit 143
fi
if [ "$task" = 5 ] && [ ! -e {self.path("killed")} ]; then
  touch {self.path("killed")}
  {scenario.program} "$@" & child=$!
  kill -STOP $child  # or it might be done before it is killed
  kill -KILL $child
  wait $child
  exit 137
fi
exec {scenario.program} "$@"
""")
        os.chmod(stand_in, 0o755)
        environment = self.settings(6) | slurm.environment | {"HMMJIT": stand_in}
        submit = [os.path.join(EXAMPLES, "submit.sh"), "--cpus-per-task=1", "--mem=400M"]

        def run():
            done = ok(subprocess.run(submit, cwd=self.folder, env=environment, text=True, capture_output=True, timeout=120))
            return done.stdout.split()[-1]

        def logs():
            names = [name for name in os.listdir(self.folder) if name.endswith(".log")]
            return {name: read(self.path(name))[-400:] for name in names}

        merge = run()
        array = str(int(merge) - 1)
        slurm.wait([array, merge], 120)
        done = subprocess.run([scenario.program, "part", "missing", "--array", self.path("parts")],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (3, "5\n"), (done.stderr, logs()))
        self.assertFalse(os.path.exists(self.path("results/report.txt")))
        runs = read(self.path("log")).decode().splitlines()
        self.assertIn("task 2 run 1", runs, "task 2 was sent back and ran again")
        slurm.call(["scancel", merge], check=False)
        # The same command line submits what is missing, and the merge.
        merge = run()
        slurm.wait([str(int(merge) - 1), merge], 120)
        self.check_results()
        runs = read(self.path("log")).decode().splitlines()
        self.assertEqual([runs.count(f"task {task} run 0") for task in range(1, 7)],
                         [1, 1, 1, 1, 2, 1])

    def test_a_complete_folder_is_checked(self):
        os.makedirs(self.path("parts"))
        ok(scenario.search(["--part", "1/1", "--part-file", self.path("parts/1.hjpart"), self.library, self.targets]))
        with open(self.path("sbatch"), "w") as file:
            file.write('#!/bin/bash\necho "$@" >>log; echo 7\n')
        os.chmod(self.path("sbatch"), 0o755)
        environment = self.settings(1)
        ok(subprocess.run([os.path.join(EXAMPLES, "submit.sh")], cwd=self.folder, capture_output=True, timeout=60,
                          env=environment | {"PATH": self.folder + os.pathsep + environment["PATH"]}))
        search, merge = read(self.path("log")).decode().splitlines()
        self.assertIn("--array=1 ", search)
        self.assertIn("--dependency=afterok:7 ", merge)

    def run_snakemake(self, more):
        command = [snakemake(), "--snakefile", os.path.join(EXAMPLES, "Snakefile"), "--config",
                   f"models={self.library}", f"targets={self.targets}", "parts=2",
                   f"hmmjit={scenario.program}", "mem_mb=400", "merge_mem_mb=400"]
        environment = dict(os.environ, HOME=self.folder)
        done = ok(subprocess.run(command + more, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300))
        return done.stderr

    @unittest.skipIf(snakemake() is None, "Snakemake is not installed (tools/install_packages.sh --snakemake)")
    def test_snakemake(self):
        self.run_snakemake(["--cores", "2"])
        self.check_results()
        before = os.stat(self.path("parts/1.hjpart")).st_mtime_ns
        os.remove(self.path("parts/2.hjpart"))
        os.remove(self.path("results/domains.tbl"))
        text = self.run_snakemake(["--cores", "2"])
        self.assertIn("search_part", text)
        self.assertEqual(os.stat(self.path("parts/1.hjpart")).st_mtime_ns, before)
        self.check_results()
        self.run_snakemake(["parts=3", "--cores", "2"])  # makes other parts
        self.check_results()

    @unittest.skipIf(one_machine_slurm.missing(), f"Slurm: {one_machine_slurm.missing()}")
    @unittest.skipUnless(slurm_executor(), "Snakemake has no Slurm executor here (tools/install_packages.sh --snakemake)")
    def test_snakemake_on_slurm(self):
        slurm = self.slurm()
        # Snakemake starts itself by its name in the tasks.
        before = os.environ["PATH"]
        self.addCleanup(os.environ.update, PATH=before)
        os.environ["PATH"] = os.path.dirname(snakemake()) + os.pathsep + before
        os.environ["SLURM_CONF"] = slurm.configuration
        self.addCleanup(os.environ.pop, "SLURM_CONF")
        self.run_snakemake(["--executor", "slurm", "--slurm-status-command", "squeue",
                            "--slurm-no-account", "--jobs", "4", "--latency-wait", "5",
                            "--slurm-init-seconds-before-status-checks", "1",
                            "--seconds-between-status-checks", "2"])
        self.check_results()


if __name__ == "__main__":
    scenario.main()
