"""Models from sequences and alignments, and searches in rounds."""
from __future__ import annotations

import functools
import itertools
import os
from ctypes import addressof, byref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from . import _binding as _b
from ._common import (ALPHABETS, INT32, UINT32, Bytes, PathLike, UsageError, choose, contents, integer, is_path,
                      real, unknown_option)
from ._inputs import Model, Models, Sequence, Targets, TargetsSource, alphabet_of, is_models, sequences_of
from ._msa import MSA
from ._interface import SearchOptions
from ._options import make_options
from ._results import Result, Results
from ._search import Run, in_loop, results_of, search, shows_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._search import OnProgress, OnWarning

_COLUMNS = {"fast": 0, "hand": 1}
_WEIGHTS = {"pb": 0, "gsc": 1, "blosum": 2, "none": 3, None: 3, "given": 4}
_EFFECTIVE = {"entropy": 0, "exp": 1, "clust": 2, "none": 3, None: 3}
_PRIORS = {"mixture": 0, "none": 1, None: 1, "laplace": 2}


class Builder:
    """Builds models from sequences, like phmmer and nhmmer, and from alignments, like hmmbuild, with HMMER's
    defaults.

    `alphabet`: "amino", "dna" or "rna". None: that of Targets and PyHMMER's objects; guessed from the letters of an
    alignment.

    Single sequences: `score_matrix` is a name (PAM30 to PAM240, BLOSUM45 to BLOSUM90, DNA1) or the path of a file (None:
    BLOSUM62, or DNA1 for nucleotides). `popen` and `pextend` are gap probabilities (None: 0.02 and 0.4, or 0.03125 and
    0.75 for nucleotides; alignments: estimated from the counts).

    Alignments: `architecture`, "fast" or "hand"; `symfrac`, `fragthresh`; `weighting`, "pb", "gsc", "blosum",
    "none" or "given"; `wid`; `effective_number`, "entropy", "exp", "clust", "none" or a number; `ere`, `esigma`,
    `eid`; `prior`, "mixture", "laplace" or "none"; `max_insertions`; `single_by_matrix`: treats alignments of one row
    as sequences. `ere` None: 0.59, or 0.62 for nucleotides.

    Nucleotides: `window_length`, the longest hit expected (MAXL), or `window_beta`, the tail mass beyond it.

    Calibration: `seed` (0: an arbitrary one); `EmL`, `EmN`, `EvL`, `EvN`, `EfL`, `EfN`, `Eft`. `threads`: for many
    models; 0: all cores. Immutable: several threads may use one.
    """

    def __init__(self, alphabet: Optional[str] = None, *, score_matrix: Optional[PathLike] = None, popen: Optional[float] = None,
                 pextend: Optional[float] = None, architecture: str = "fast", symfrac: float = 0.5,
                 fragthresh: float = 0.5, weighting: Optional[str] = "pb", wid: float = 0.62,
                 effective_number: Union[str, float, None] = "entropy", ere: Optional[float] = None, esigma: float = 45.0,
                 eid: float = 0.62, prior: Optional[str] = "mixture", max_insertions: Optional[int] = None,
                 single_by_matrix: bool = False, seed: int = 42, EmL: int = 200, EmN: int = 200, EvL: int = 200,
                 EvN: int = 200, EfL: int = 100, EfN: int = 200, Eft: float = 0.04, threads: int = 0,
                 window_length: Optional[int] = None, window_beta: float = 1e-7) -> None:
        self._settings = {name: value for name, value in locals().items() if name != "self"}
        o = _b.BuildOptions()
        _b.build_options_init(byref(o))
        if alphabet is not None:
            o.alphabet = choose("alphabet", alphabet, ALPHABETS)
        named = isinstance(score_matrix, str) and os.sep not in score_matrix and not os.path.exists(score_matrix)
        if named:
            o.matrix = _b.encode(str(score_matrix).upper())
        elif score_matrix is not None:
            o.matrix_file = _b.encode(score_matrix)
        for name in ("popen", "pextend", "symfrac", "fragthresh", "wid", "ere", "esigma", "eid", "Eft", "window_beta"):
            if self._settings[name] is not None:
                setattr(o, _b.BUILDER.get(name, name), real(name, self._settings[name],
                                                            positive=name in ("ere", "esigma", "Eft")))
        for name in ("EmL", "EmN", "EvL", "EvN", "EfL", "EfN"):
            setattr(o, _b.BUILDER[name], integer(name, self._settings[name], 1, 1000000))
        o.columns = choose("architecture", architecture, _COLUMNS)
        o.weights = choose("weighting", weighting, _WEIGHTS)
        if isinstance(effective_number, str) or effective_number is None:
            o.effective = choose("effective_number", effective_number, _EFFECTIVE)
        else:
            o.effective, o.effective_number = 4, real("effective_number", effective_number)
        o.prior = choose("prior", prior, _PRIORS)
        o.most_insertions = 0 if max_insertions is None else integer("max_insertions", max_insertions, 5, INT32)
        o.single_rows_by_matrix = bool(single_by_matrix)
        o.seed, o.threads = integer("seed", seed, 0, UINT32), integer("threads", threads, 0, 1024)
        o.window_length = 0 if window_length is None else integer("window_length", window_length, 1, INT32)
        self._options = o

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        return functools.partial(Builder, **self._settings), ()

    def build(self, sequence: Any) -> Model:
        """Builds a model of one sequence, like phmmer or nhmmer: residues as text, a Sequence, (name, residues), or
        an object of PyHMMER or Biopython. Reports show the sequence's names."""
        models = self.build_many([Sequence("query", sequence) if isinstance(sequence, str) else sequence])
        if len(models) != 1:
            raise _b.InputError("no model can be built of a sequence without residues")
        return models[0]

    def build_many(self, sequences: TargetsSource) -> Models:
        """Builds models of all sequences with residues, in order, on several threads. `sequences`: anything that
        Targets accepts."""
        return self._build_many(sequences, "amino")

    def _build_many(self, sequences: TargetsSource, usual: str) -> Models:
        targets = sequences_of(sequences, self._settings["alphabet"], usual)
        return self._made(_b.build_models, self._options_of(targets.alphabet or usual), targets._handle)

    @staticmethod
    def _made(build: Any, options: Any, *arguments: Any) -> Models:
        def work(callbacks: Any) -> _b.Handle:
            options.cancellation = callbacks._obj.cancellation
            return _b.Handle("models", build, *arguments, byref(options))

        return Models._of(Run(work).wait())

    def _options_of(self, alphabet: str) -> Any:
        """The options for sequences or alignments of this alphabet; "": unknown."""
        options = type(self._options).from_buffer_copy(self._options)
        if alphabet and self._settings["alphabet"] is None:
            options.alphabet = choose("alphabet", alphabet, ALPHABETS)
        return options

    def build_msa(self, alignment: Any) -> Model:
        """Builds a model of one alignment, like hmmbuild: an MSA, bytes of a file (Stockholm, aligned FASTA, ...), or
        an alignment of PyHMMER."""
        models = self.build_all(alignment)
        if len(models) != 1:
            raise UsageError(f"{len(models)} alignments are given; build_all takes them")
        return models[0]

    def build_all(self, alignments: Any, format: Optional[str] = None) -> Models:
        """Builds a model of each alignment of a file, given as path or bytes, like hmmbuild. `format`: None, or a
        name of hmmbuild's --informat. PyHMMER writes the cutoffs of its alignments rounded to 0.1 bit: give the file,
        or set `gathering` of the model."""
        given = contents(alignments)
        encoded = _b.encode(format)
        if is_path(given):
            return self._made(_b.build_from_alignments, self._options_of(""), _b.encode(given), encoded)
        name = b"alignment"
        if isinstance(given, MSA):
            name, given = _b.encode(given.name) or name, given.stockholm()
        elif hasattr(given, "write"):  # pyhmmer.easel.MSA
            import io
            data = io.BytesIO()
            given.write(data, "stockholm")
            name, given = _b.encode(getattr(given, "name", None)) or name, data.getvalue()
        if not isinstance(given, (bytes, bytearray, memoryview)):
            raise TypeError(f"no alignment: {type(alignments).__name__}; give a MSA, a path, bytes, or PyHMMER's MSA")
        text = bytes(given)
        return self._made(_b.build_from_alignment_memory, self._options_of(alphabet_of(alignments, "")), text, len(text),
                          encoded, name)


def _queries(source: Any) -> Any:
    """The sequences or models of the first rounds."""
    if is_models(source):
        return source if isinstance(source, Models) else Models(source)
    if isinstance(source, str) and not os.path.exists(source) and source.isalpha():
        source = [Sequence("query", source)]
    return _searched(source)


def _searched(source: TargetsSource) -> Targets:
    """jackhmmer reads every sequence as a protein's."""
    return source if isinstance(source, Targets) else Targets(source, None if is_path(source) else "amino")


@shows_options
def phmmer(queries: TargetsSource, targets: TargetsSource, *, builder: Optional[Builder] = None,
           progress: Optional[OnProgress] = None, interval: float = 0.25, warning: Optional[OnWarning] = None,
           **options: Unpack[SearchOptions]) -> Results:
    """Searches with protein sequences as queries, as phmmer does. Returns one Result per query with residues.
    `queries`: anything that Targets accepts. `builder` builds their models, all of them before the search:
    190 bytes per residue, without calls of `progress`. Other arguments: see search."""
    made = make_options(options, "phmmer")  # before models are built
    models = (builder or Builder(seed=int(made.seed))).build_many(queries)
    return search(models, targets, progress=progress, interval=interval, warning=warning, **options)


_STRANDS = {None: 0, "watson": 1, "crick": 2}


def nhmmer(queries: Any, targets: TargetsSource, *, builder: Optional[Builder] = None, strand: Optional[str] = None,
           window_length: Optional[int] = None, window_beta: Optional[float] = None, B1: int = 110, B2: int = 240,
           B3: int = 1000, block_length: int = 262144, progress: Optional[OnProgress] = None, interval: float = 0.25,
           warning: Optional[OnWarning] = None, **options: Unpack[SearchOptions]) -> Results:
    """Searches DNA or RNA in sequences of any length, on both strands, as nhmmer does. Returns one Result per query;
    its hits are single domains with a `strand`.

    `queries`: models, or the path of a profile file; an alignment (MSA, or PyHMMER's); or sequences. `builder` builds
    models of alignments and sequences. `targets`: anything that Targets accepts. `strand`: "watson" or "crick"
    searches only the top or the bottom strand. `window_length` is the longest expected hit, `window_beta` the tail
    mass that determines it; None: the model's own. `B1`, `B2`, `B3` and `block_length`: as in nhmmer. Other
    arguments: see search; they have nhmmer's defaults, Z is in millions of residues, and domain thresholds have no
    effect."""
    made = make_options(options, "nhmmer", F2=3e-3, F3=3e-5)
    if isinstance(queries, Models):
        models = queries
    elif is_models(queries) or is_path(queries):
        models = Models(queries)
    elif isinstance(queries, MSA) or hasattr(queries, "write") and hasattr(queries, "names"):  # pyhmmer.easel.MSA
        models = (builder or Builder()).build_all(queries)  # nhmmer calibrates these with 42 for any --seed
    else:
        models = (builder or Builder(seed=int(made.seed)))._build_many(queries, "dna")
    if is_path(targets):
        targets = Targets(targets)
    elif not isinstance(targets, Targets):
        if models._path is not None:
            models = Models.load(models._path)  # a pipe can be read only once
        targets = Targets(targets, alphabet_of(models[:1], "dna"))
    out = _b.NhmmerOptions()
    _b.nhmmer_options_init(byref(out))
    out.search, out.strands = addressof(made), choose("strand", strand, _STRANDS)
    out.window_length = 0 if window_length is None else integer("window_length", window_length, 4, INT32)
    out.window_beta = 0 if window_beta is None else real("window_beta", window_beta)
    out.B1, out.B2, out.B3 = (integer(name, number, 1, INT32) for name, number in (("B1", B1), ("B2", B2), ("B3", B3)))
    out.block_length = integer("block_length", block_length, 50000, INT32)
    now, searched = models._handle, targets
    run = Run(lambda callbacks: _b.Handle("results", lambda pointer: _b.nhmmer(
        now, searched._handle, byref(out), callbacks, pointer)), None, progress, interval, warning)
    return results_of(run.wait(), made)


class IterationResult(NamedTuple):
    """One round of one query."""

    hits: Result  #: hits of the model
    model: Model  #: the model of this round
    msa: MSA  #: the query and the included domains, aligned: input of the next model
    iteration: int  #: from 1
    converged: bool  #: nothing new was found
    last: bool  #: converged, or the last requested round
    query: int  #: index among the queries
    new_targets: int  #: included now, but not in the previous round


class IterativeSearch:
    """A search in rounds, like jackhmmer's. Each iteration yields a list with an IterationResult per unfinished
    query. With a single query, write `for [round] in search`.

    `queries`: protein sequences (anything that Targets accepts, or residues as text), or models (Model, Models or
    PyHMMER's HMM), whose alignments have no query row. `targets`: as in search; targets of a path are read once and
    stay in memory if they fit. `max_iterations`: most rounds. `builder` builds the models; in later rounds, match
    columns are always the query's and those added since. Options: as in search, without cutoffs, first_target and
    target_count, with jackhmmer's defaults: incE and incdomE are 0.001.

    `a3m`, `alignment_file`: needed for Report.add_rounds of "a3m", or of "stockholm" (for that file). `report`: a
    dict with prefer_accession, alignments and text_width of the main report.

    `async for` works as `for` does. One thread at a time.
    """

    def __init__(self, queries: Any, targets: TargetsSource, *, max_iterations: int = 5,
                 builder: Optional[Builder] = None, a3m: bool = False, alignment_file: Optional[PathLike] = None,
                 report: Optional[Dict[str, Any]] = None, progress: Optional[OnProgress] = None,
                 interval: float = 0.25, warning: Optional[OnWarning] = None,
                 **options: Unpack[SearchOptions]) -> None:
        self._search = make_options(options, "IterativeSearch", incE=0.001, incdomE=0.001)
        self._builder = builder or Builder(seed=int(self._search.seed))
        how = {"prefer_accession": False, "alignments": True, "text_width": 120}
        for name, value in (report or {}).items():
            if name not in how:
                raise unknown_option("report", name, how)
            how[name] = value
        made = _b.IterationOptions()
        _b.iteration_options_init(byref(made))
        made.rounds = integer("max_iterations", max_iterations, 1, INT32)
        made.prefer_accession, made.alignments = bool(how["prefer_accession"]), bool(how["alignments"])
        made.text_width = integer("text_width", how["text_width"], 0, INT32)
        made.a3m = bool(a3m)
        made.alignment_file = _b.encode(alignment_file)
        made.search, made.build = addressof(self._search), addressof(self._builder._options)
        begun = _queries(queries)
        create = _b.iteration_from_models if isinstance(begun, Models) else _b.iteration_create
        searched = _searched(targets)
        self._handle = _b.Handle("iteration", create, begun._handle, searched._handle, byref(made))
        self._calls = progress, interval, warning

    def __len__(self) -> int:
        """Queries."""
        return int(_b.iteration_queries(self._handle.pointer))

    @property
    def done(self) -> bool:
        """No query has a further round."""
        return bool(_b.iteration_done(self._handle.pointer))

    def _start(self, on_done: Any = None) -> Run:
        progress, interval, warning = self._calls
        return Run(lambda callbacks: _b.Handle("rounds", lambda out: _b.iteration_next(
            self._handle.pointer, callbacks, out)), None, progress, interval, warning, on_done)

    @staticmethod
    def _rounds(handle: _b.Handle) -> List[IterationResult]:
        found = []
        for i in range(_b.rounds_count(handle.pointer)):
            one = _b.rounds_get(handle.pointer, i)
            info = _b.RoundInfo()
            _b.round_get_info(one, byref(info))
            model = _b.Handle("models", lambda out: _b.round_model(one, out))
            result = Result(_b.round_result(one))
            msa = MSA._of_stockholm(_b.round_alignment(one) or b"", result.name)
            found.append(IterationResult(result, Model(model.pointer), msa, info.number, bool(info.converged),
                                         bool(info.last), info.query, info.new_targets))
        return found

    def __iter__(self) -> IterativeSearch:
        return self

    def __next__(self) -> List[IterationResult]:
        if self.done:
            raise StopIteration
        return self._rounds(self._start().wait())

    def __aiter__(self) -> IterativeSearch:
        return self

    async def __anext__(self) -> List[IterationResult]:
        if self.done:
            raise StopAsyncIteration
        return self._rounds(await in_loop(self._start))

    def report(self, kind: str = "main", path: Optional[PathLike] = None, **settings: Any) -> Optional[bytes]:
        """The output of all queries, once their rounds are done, as jackhmmer writes it: returned as bytes, or
        written to `path`. Other arguments: see Report; for the main report, the constructor's `report` applies."""
        from ._reports import Report
        ignored = sorted({"prefer_accession", "alignments", "text_width"} & set(settings)) if kind == "main" else []
        if ignored:
            raise UsageError(f"{', '.join(ignored)} of the main report: give them to IterativeSearch(report={{...}})")
        made = Report(kind, path, search=self._search, **settings)
        for query in range(len(self)):
            made.add_rounds(self, query)
        return made.complete()


# Queries whose rounds run concurrently.
_AT_A_TIME = 64


def jackhmmer(queries: Any, targets: TargetsSource, *, max_iterations: int = 5, builder: Optional[Builder] = None,
              checkpoints: bool = False, progress: Optional[OnProgress] = None, interval: float = 0.25,
              warning: Optional[OnWarning] = None,
              **options: Unpack[SearchOptions]) -> Iterator[Any]:
    """Searches in rounds, as jackhmmer does, with protein sequences or models as queries; yields the last
    IterationResult of each query, in order. `checkpoints`: yields lists with the results of all rounds instead.
    Arguments: see IterativeSearch. The rounds of many queries run concurrently."""
    IterativeSearch([], [], max_iterations=max_iterations, builder=builder, **options)  # reports errors now, not at the first next()
    begun = _queries(queries)
    # Converts targets in memory once for all batches of queries.
    shared = _searched(targets)

    def results() -> Iterator[Any]:
        first, waiting = 0, iter(begun)
        for batch in iter(lambda: list(itertools.islice(waiting, _AT_A_TIME)), []):
            some = Targets(batch, begun.alphabet or "amino") if isinstance(begun, Targets) else batch
            rounds = IterativeSearch(some, shared, max_iterations=max_iterations, builder=builder, progress=progress,
                                     interval=interval, warning=warning, **options)
            seen: List[List[IterationResult]] = [[] for _ in range(len(rounds))]
            for finished in rounds:
                for one in finished:
                    seen[one.query].append(one._replace(query=first + one.query))
            first += len(rounds)
            yield from seen if checkpoints else (all_rounds[-1] for all_rounds in seen)

    return results()


for _function in (jackhmmer, IterativeSearch.__init__):
    shows_options(_function, ("cutoffs", "first_target", "target_count"), incE=0.001, incdomE=0.001)
shows_options(nhmmer, F2=3e-3, F3=3e-5)
