"""Snakemake wrapper for hmmjit search."""
import shlex

from snakemake.shell import shell

OPTIONS = {"tblout": "--tblout", "domtblout": "--domtblout", "pfamtblout": "--pfamtblout", "tsv": "--tsv",
           "json": "--json", "alignment": "-A", "report": "-o"}

unknown = set(snakemake.output.keys()) - set(OPTIONS)
if unknown or len(snakemake.output.keys()) != len(snakemake.output):
    raise ValueError(f"outputs must be named, with names of {', '.join(OPTIONS)}; not: "
                     f"{', '.join(sorted(unknown)) or 'an output without a name'}")
if len(snakemake.output) == 0:
    raise ValueError(f"no output is named; there are {', '.join(OPTIONS)}")

words = ["--cpu", str(snakemake.threads)]
memory = snakemake.resources.get("mem_mb")
if isinstance(memory, int):
    words += ["--mem", f"{memory}M"]
for name, path in snakemake.output.items():
    words += [OPTIONS[name], path]
if "report" not in snakemake.output.keys():
    words += ["-o", "/dev/null"]
profiles = snakemake.input.profiles
profiles = [profiles] if isinstance(profiles, str) else list(profiles)
words_of_inputs = shlex.join([*profiles, snakemake.input.sequences])
log = snakemake.log_fmt_shell(stdout=False, stderr=True)
shell(f"hmmjit search {snakemake.params.get('extra', '')} {shlex.join(words)} {words_of_inputs} {log}")
