"""Profile-HMM search with hmmsearch's results, in this process. For example::

    import hmmjit
    for result in hmmjit.search("Pfam.hmm", "proteome.fasta", cutoffs="gathering"):
        for hit in result.reported:
            print(result.name, hit.name, hit.score, hit.e_value)

    table = hmmjit.search(models, targets).table()      # columns; pandas.DataFrame(table) works

    hmmjit.phmmer(sequences, targets)                   # sequences as queries
    hmmjit.scan(sequences, models)                      # results by sequence, as hmmscan
    hmmjit.nhmmer("families.hmm", "genome.fa")          # DNA, both strands
    for [round] in hmmjit.IterativeSearch(sequence, targets):           # in rounds, as jackhmmer
        print(round.iteration, len(round.msa), round.converged)
    hmmjit.Builder().build_msa(alignment).write("family.hmm")           # as hmmbuild

Models and targets may be paths, bytes, or iterables of objects, also PyHMMER's. Scores, E-values and their order
equal hmmsearch's, for any number of threads and any device. A search releases the interpreter lock: other Python
threads go on, and several searches may run concurrently. Failures are exceptions derived from hmmjit.Error.
"""
from . import _binding as _b
from ._binding import (Cancelled, CompileError, Error, InputError, InternalError, NoDeviceError, OutputError,
                       ResourcesError, UsageError)
from ._build import Builder, IterationResult, IterativeSearch, jackhmmer, nhmmer, phmmer
from ._inputs import Model, Models, Sequence, Targets
from ._machine import Cache, build_database, database_info, devices, plan, verify_database
from ._msa import MSA
from ._options import SearchOptions
from ._parts import (PartInfo, join_parts, merge_parts, merge_parts_to_files, missing_parts, part_info, search_part,
                     verify_part)
from ._reports import Report
from ._results import Alignment, Domain, Hit, Result, Results, Table
from ._search import SearchIterator, scan, search, search_async, search_iter, search_to_files
from ._session import Session

__all__ = ["Alignment", "Builder", "Cache", "Cancelled", "CompileError", "Domain", "Error", "Hit", "InputError",
           "InternalError", "IterationResult", "IterativeSearch", "MSA", "Model", "Models", "NoDeviceError",
           "OutputError", "PartInfo", "Report", "ResourcesError", "Result", "Results", "SearchIterator",
           "SearchOptions", "Sequence", "Session", "Table", "Targets", "UsageError", "build_database", "database_info",
           "devices", "jackhmmer", "join_parts", "merge_parts", "merge_parts_to_files", "missing_parts", "nhmmer", "part_info",
           "phmmer", "plan", "scan", "search", "search_async", "search_iter", "search_part", "search_to_files",
           "verify_database", "verify_part"]

__version__: str = _b.VERSION
