"""Results of searches: hits, domains, alignments, tables."""
from __future__ import annotations

import contextlib
import ctypes
import html
import math
import operator
import os
import tempfile
from ctypes import byref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union, cast, overload

from . import _binding as _b
from ._common import INT32, choose, integer
from ._fields import Fields, Immutable
from ._interface import AlignmentFields, DomainFields, HitFields, ResultFields
from ._options import options_of, set_table

if TYPE_CHECKING:
    from ._common import PathLike
    from ._msa import MSA


class _Record(Immutable, Fields):
    """Attributes of one element of a result. The result keeps the texts alive."""

    __slots__ = ("_owner",)
    _other_names = {"evalue": "e_value", "pvalue": "p_value", "i_evalue": "independent_e_value",
                    "c_evalue": "conditional_e_value", "ali_from": "alignment_from", "ali_to": "alignment_to",
                    "target_from": "alignment_from", "target_to": "alignment_to", "hmm_from": "model_from",
                    "hmm_to": "model_to", "env_from": "envelope_from", "env_to": "envelope_to", "acc": "accuracy",
                    "desc": "description", "hmm_sequence": "model", "target_sequence": "sequence",
                    "identity_sequence": "match", "posterior_probabilities": "posterior", "bitscore": "score",
                    "hits": "result"}

    def __init__(self, owner: Result, struct: Any) -> None:
        self._owner, self._struct = owner, struct

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._place() == other._place()

    def __hash__(self) -> int:
        return hash(self._place())

    def _place(self) -> Tuple[int, int]:
        return id(self._owner), ctypes.addressof(self._struct)


class Alignment(_Record, AlignmentFields):
    """The alignment of one domain: rows of equal length, one character per column. The rows are empty if the search
    kept no alignments. str() shows blocks with names and coordinates."""

    __slots__ = ()

    def blocks(self, width: int = 80) -> str:
        """The rows in blocks of at most `width` columns of alignment, with names and coordinates."""
        model, match, sequence, posterior = self.model, self.match, self.sequence, self.posterior
        names = [self._owner.name, _b.text(self._owner._hit_array()[self._struct.hit].name)]
        if self._owner.scan:
            names.reverse()
        place = self._struct
        at, steps = [place.model_from, place.alignment_from], [1, 1 if place.alignment_from <= place.alignment_to else -1]
        wide = max(len(name) for name in names)
        digits = len(str(max(place.model_to, *at, place.alignment_to)))
        blocks = []
        for start in range(0, len(model), integer("width", width, 1, INT32)):
            lines = []
            for row, text, gap in ((0, model, "."), (1, sequence, "-")):
                piece = text[start:start + width]
                count = len(piece) - piece.count(gap)
                first, last = (str(at[row]), str(at[row] + steps[row] * (count - 1))) if count else ("-", "-")
                at[row] += steps[row] * count
                lines.append(f"{names[row]:>{wide}} {first:>{digits}} {piece} {last}")
            pad = " " * (wide + digits + 2)
            lines.insert(1, pad + match[start:start + width])
            lines.append(pad + posterior[start:start + width] + " PP")
            blocks.append("\n".join(line.rstrip() for line in lines))
        return "\n\n".join(blocks)

    def __str__(self) -> str:
        return self.blocks()

    def __len__(self) -> int:
        """Columns."""
        return len(self.model)

    def __repr__(self) -> str:
        return f"<hmmjit.Alignment of {len(self)} columns>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.blocks())}</pre>"

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        return operator.attrgetter("alignment"), (Domain(self._owner, self._struct),)


class _Scored(_Record):
    """A hit or a domain."""

    __slots__ = ()

    @property
    def p_value(self) -> float:
        """Probability of such a score by chance; if 0, see ln_p. nhmmer: for all targets together."""
        p = math.exp(self._struct.ln_p)
        return -math.expm1(-p) if self._owner.long_targets else p


class Domain(_Scored, DomainFields):
    """One domain. Coordinates are 1-based and inclusive."""

    __slots__ = ()

    @property
    def strand(self) -> Optional[str]:
        """"+", or "-" if positions on the target descend; None except in results of nhmmer."""
        if not self._owner.long_targets:
            return None
        return "-" if self.alignment_from > self.alignment_to else "+"

    @property
    def alignment(self) -> Alignment:
        """The domain aligned with the model; texts are "" if the search did not keep alignments."""
        return Alignment(self._owner, self._struct)

    @property
    def hit(self) -> Hit:
        """The target of this domain."""
        return self._owner[int(self._struct.hit)]

    def __repr__(self) -> str:
        return (f"<hmmjit.Domain {self.envelope_from}-{self.envelope_to}, {self.score:.1f} bits, "
                f"i-E {self.independent_e_value:.2g}>")

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.alignment._repr_html_()}"

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        hit = int(self._struct.hit)
        first = self._owner._hit_array()[hit].first_domain
        place = ctypes.addressof(self._struct) - ctypes.addressof(self._owner._domain_array())
        return _domain_of, (self._owner, hit, place // ctypes.sizeof(_b.Domain) - first)


def _domain_of(result: Result, hit: int, domain: int) -> Domain:
    return result[hit].domains[domain]


class Domains(List[Domain]):
    """Domains of a target, by position."""

    @property
    def reported(self) -> List[Domain]:
        """Those that satisfy the reporting thresholds."""
        return [domain for domain in self if domain.reported]

    @property
    def included(self) -> List[Domain]:
        """Those that also satisfy the inclusion thresholds."""
        return [domain for domain in self if domain.included]


class Hit(_Scored, HitFields):
    """One target; in results of nhmmer, one domain of a target."""

    __slots__ = ()

    @property
    def query(self) -> str:
        """Name of the query: of the model, or of the sequence it was built from."""
        return self._owner.name

    @property
    def strand(self) -> Optional[str]:
        """"+" or "-"; None except in results of nhmmer."""
        return self.domains[0].strand if self._owner.long_targets else None

    @property
    def result(self) -> Result:
        """The result with this hit."""
        return self._owner

    @property
    def domains(self) -> Domains:
        """All domains, by position; `domains.reported` and `domains.included` select some."""
        first = self._struct.first_domain
        array = self._owner._domain_array()
        return Domains(Domain(self._owner, array[i]) for i in range(first, first + self._struct.domains))

    @property
    def best_domain(self) -> Domain:
        """The domain with the best score."""
        return self.domains[int(self._struct.best_domain)]

    def __repr__(self) -> str:
        return f"<hmmjit.Hit {self.name!r}, {self.score:.1f} bits, E {self.e_value:.2g}>"

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        place = ctypes.addressof(self._struct) - ctypes.addressof(self._owner._hit_array())
        return operator.getitem, (self._owner, place // ctypes.sizeof(_b.Hit))


_SHOWN_ROWS = 20


class Table(Dict[str, Any]):
    """Columns by name, in order: NumPy arrays if NumPy is installed, else lists.

    `pandas.DataFrame(table)`, `polars.DataFrame(table)` and `pyarrow.table(table)` accept it; with pyarrow, so does
    every reader of the Arrow C stream interface.
    """

    def __init__(self, columns: Dict[str, List[Any]]) -> None:
        numpy: Any = None
        try:
            import numpy
        except ImportError:
            pass
        super().__init__((name, values if numpy is None else
                          numpy.array(values, dtype=_NUMPY_TYPES[COLUMN_TYPES.get(name, b"g")]))
                         for name, values in columns.items())

    @property
    def rows(self) -> int:
        """Length of each column."""
        return len(next(iter(self.values()), []))

    def __len__(self) -> int:
        """Rows."""
        return self.rows

    def __bool__(self) -> bool:
        return self.rows > 0

    def to_pandas(self) -> Any:
        """A pandas.DataFrame."""
        import pandas  # type: ignore[import-untyped,unused-ignore]
        return pandas.DataFrame(dict(self))

    def _lists(self) -> Dict[str, List[Any]]:
        for name, values in self.items():
            try:
                "".join(v for v in values if isinstance(v, str)).encode()
            except UnicodeEncodeError:
                raise _b.UsageError(f"{name}: text that is not UTF-8, which Arrow and Polars do not take") from None
        return {name: list(values) for name, values in self.items()}

    def to_polars(self) -> Any:
        """A polars.DataFrame."""
        import polars
        types = {b"U": polars.Utf8, b"l": polars.Int64, b"b": polars.Boolean, b"g": polars.Float64}
        return polars.DataFrame(self._lists(),
                                schema={name: types[COLUMN_TYPES.get(name, b"g")] for name in self})

    def to_arrow(self) -> Any:
        """A pyarrow.Table; columns have their types even without rows. Needs pyarrow."""
        import pyarrow  # type: ignore[import-untyped,unused-ignore]
        types = {b"U": pyarrow.large_string(), b"l": pyarrow.int64(), b"b": pyarrow.bool_(), b"g": pyarrow.float64()}
        return pyarrow.table({name: pyarrow.array(values, types[COLUMN_TYPES.get(name, b"g")])
                              for name, values in self._lists().items()})

    def to_parquet(self, path: Union[str, "os.PathLike[str]"], **options: Any) -> None:
        """Writes a Parquet file with pyarrow (`pip install 'hmmjit[parquet]'`); ImportError if it is missing.

        `options`: for pyarrow.parquet.write_table, such as compression="zstd". The file appears once complete; an
        error leaves no file, and an older file of that name unchanged.
        """
        import pyarrow.parquet  # type: ignore[import-untyped,unused-ignore]
        final = os.path.realpath(path)
        handle, temporary = tempfile.mkstemp(prefix="." + os.path.basename(final) + ".", dir=os.path.dirname(final))
        os.close(handle)
        try:
            pyarrow.parquet.write_table(self.to_arrow(), temporary, **options)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, final)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):  # pyarrow removes files that it cannot write
                os.unlink(temporary)
            raise

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow PyCapsule interface. Needs pyarrow 14 or later."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        def cell(value: Any) -> str:
            return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))

        head = "".join(f"<th>{html.escape(name)}</th>" for name in self)
        body = "".join("<tr>" + "".join(f"<td>{cell(values[i])}</td>" for values in self.values()) + "</tr>"
                       for i in range(min(self.rows, _SHOWN_ROWS)))
        more = f"<p>{self.rows - _SHOWN_ROWS} more rows</p>" if self.rows > _SHOWN_ROWS else ""
        return f"<table><tr>{head}</tr>{body}</table>{more}"


# Arrow's types of columns that are not float64. Names as in the program's --tsv.
COLUMN_TYPES = {**{name: b"U" for name in ("target", "target_accession", "model", "model_accession", "description")},
                **{name: b"l" for name in ("target_length", "target_index", "model_length", "model_index", "domain",
                                           "domains", "domains_included", "hmm_from", "hmm_to", "ali_from", "ali_to",
                                           "env_from", "env_to")},
                **{name: b"b" for name in ("included", "domain_included")}}
_NUMPY_TYPES = {b"U": "object", b"l": "int64", b"b": "bool", b"g": "float64"}
_TARGET_COLUMNS = ("target", "target_accession", "target_length", "target_index", "model", "model_accession",
                   "model_length", "model_index", "evalue", "score", "bias", "included")
# The members that columns show.
_DOMAIN_COLUMNS = {"c_evalue": "conditional_e_value", "i_evalue": "independent_e_value", "domain_score": "score",
                   "domain_bias": "bias", "domain_included": "included", "hmm_from": "model_from",
                   "hmm_to": "model_to", "ali_from": "alignment_from", "ali_to": "alignment_to",
                   "env_from": "envelope_from", "env_to": "envelope_to", "accuracy": "accuracy"}


class Result(Immutable, ResultFields):
    """The hits of one model: a sequence of Hit, in hmmsearch's order, best first. Of a scan: the models of one sequence.

    Holds every candidate; `reported` are those that satisfy the thresholds. A pickle holds all candidates, for
    processes with the same version of the library.
    """

    __slots__ = ("_handle", "_arrays", "__weakref__")
    _other_names = {"query": "name", "query_name": "name", "M": "length"}

    def __init__(self, pointer: Any) -> None:
        self._take(_b.Handle("result", _b.result_copy, pointer))

    def _take(self, handle: _b.Handle) -> None:
        self._handle = handle
        self._struct = _b.ResultInfo()
        _b.result_get_info(self._handle.pointer, byref(self._struct))
        self._arrays: Dict[Any, Any] = {}

    @property
    def counts(self) -> Dict[str, int]:
        """Searched targets, their residues, and targets that passed each filter."""
        return {name: getattr(self._struct.counts, name) for name, *_ in _b.FilterCounts._fields_}

    def _array(self, kind: Any, count: int, get: Any) -> Any:
        if kind not in self._arrays:
            array = (kind * count)()
            if count:
                array[0].size = ctypes.sizeof(kind)
                get(self._handle.pointer, 0, count, array)
            return self._arrays.setdefault(kind, array)  # another thread may be faster
        return self._arrays[kind]

    def _hit_array(self) -> Any:
        return self._array(_b.Hit, self._struct.hits, _b.result_get_hits)

    def _domain_array(self) -> Any:
        return self._array(_b.Domain, self._struct.domains, _b.result_get_domains)

    def __len__(self) -> int:
        """Candidates, reported or not."""
        return int(self._struct.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...

    @overload
    def __getitem__(self, index: slice) -> List[Hit]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Hit, List[Hit]]:
        hits = self._hit_array()[index]
        return [Hit(self, h) for h in hits] if isinstance(index, slice) else Hit(self, hits)

    def __iter__(self) -> Iterator[Hit]:
        return (Hit(self, h) for h in self._hit_array())

    @property
    def reported(self) -> List[Hit]:
        """Hits that satisfy the reporting thresholds."""
        return [h for h in self if h.reported]

    @property
    def included(self) -> List[Hit]:
        """Hits that also satisfy the inclusion thresholds."""
        return [h for h in self if h.included]

    def table(self, of: str = "targets") -> Table:
        """Columns of the reported targets, or of the reported domains; see Results.table."""
        return make_table([self], of)

    def to_msa(self) -> MSA:
        """The included domains, aligned by the model, as `-A` writes them. UsageError if the search kept no
        alignments. Without included domains, the alignment has no rows."""
        from ._msa import MSA
        from ._reports import Report
        report = Report("stockholm", text_width=0)
        report.add(self)
        return MSA._of_stockholm(report.complete() or b"", self.name)

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        return _result_of, (_b.take_text(_b.Handle("text", _b.result_write, self._handle.pointer)),)

    def __repr__(self) -> str:
        return f"<hmmjit.Result of {self.name!r}, {len(self.reported)} reported>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.table()._repr_html_()}"


def _result_of(data: bytes) -> Result:
    result = Result.__new__(Result)
    result._take(_b.Handle("result", _b.result_read, data, len(data)))
    return result


def make_table(results: Iterable[Result], of: str) -> Table:
    by_domain = choose("table", of, {"targets": 0, "domains": 1}) == 1
    extra = ("domain", *_DOMAIN_COLUMNS) if by_domain else ("domains", "domains_included", "expected_domains")
    last = ("ln_p", "description", "model_coverage") if by_domain else ("ln_p", "description")
    columns: Dict[str, List[Any]] = {name: [] for name in (*_TARGET_COLUMNS, *extra, *last)}
    for result in results:
        for hit in result.reported:
            domains = hit.domains.reported
            shown: List[Optional[Domain]] = [*domains] if by_domain else [None]
            for number, domain in enumerate(shown, 1):
                target: Any = result if result.scan else hit
                model: Any = hit if result.scan else result
                values = [target.name, target.accession, target.length, target.index, model.name, model.accession,
                          model.length, model.index, hit.e_value, hit.score, hit.bias, hit.included]
                if domain is None:
                    values += [len(domains), len(hit.domains.included), hit.expected_domains]
                else:
                    values += [number, *(getattr(domain, m) for m in _DOMAIN_COLUMNS.values())]
                values += [hit.ln_p, target.description]
                if domain is not None:
                    values.append((domain.model_to - domain.model_from + 1) / model.length)
                for column, value in zip(columns.values(), values):
                    column.append(value)
    return Table(columns)


class Results(List[Result]):
    """A list of Result, one per model in input order, with the run's `statistics` (a dict)."""

    statistics: Dict[str, Any]

    def __init__(self, results: Iterable[Result], statistics: Dict[str, Any], options: Any) -> None:
        super().__init__(results)
        self.statistics, self._options = statistics, options

    @property
    def options(self) -> Dict[str, Any]:
        """The options that determine the results, such as thresholds, by their names in search."""
        return options_of(self._options)

    def table(self, of: str = "targets") -> Table:
        """One row per reported target ("targets") or reported domain ("domains"), in hmmsearch's order. Columns are
        those of `hmmjit search --target-tsv` or, by domain, `--tsv`."""
        return make_table(self, of)

    def merge(self: Any, *others: Results) -> Results:
        """Joins results of the same models and options against several sets of targets: `a.merge(b)` or
        `Results.merge([a, b])` is the result of one search of all sets in this order. UsageError for searches with
        cutoffs; for searches on many machines, merge parts. Counters and seconds of the statistics are sums."""
        every: List[Results] = [*([self] if isinstance(self, Results) else self), *others]
        if not every or not all(isinstance(results, Results) for results in every):
            raise TypeError("merge takes Results")
        if len({len(results) for results in every}) > 1:
            raise _b.UsageError("results of different numbers of models cannot be merged")
        options = every[0]._options
        merged = []
        for same in zip(*every):
            pointers = (ctypes.c_void_p * len(same))(*(result._handle.pointer.value for result in same))
            merged.append(Result.__new__(Result))
            merged[-1]._take(_b.Handle("result", _b.result_merge, pointers, len(same), byref(options)))
        statistics = dict(every[0].statistics)
        for name, value in statistics.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and name not in (
                    "models", "threads", "passes", "peak_resident_bytes"):
                join: Any = max if name == "device_peak_bytes" else sum
                statistics[name] = join(results.statistics[name] for results in every)
        statistics["counts"] = {name: sum(results.statistics["counts"][name] for results in every)
                                for name in statistics["counts"]}
        statistics["hits_reported"] = sum(len(result.reported) for result in merged)
        statistics["domains_reported"] = sum(len(h.domains.reported) for r in merged for h in r.reported)
        statistics["json"] = ""  # of one search
        return Results(merged, statistics, options)

    def report(self, kind: str = "tblout", path: Optional[PathLike] = None, *, header: bool = False,
               **settings: Any) -> Optional[bytes]:
        """The output of a kind (see Report), returned as bytes or written to `path`, which appears once complete.
        `header`: the main report begins with hmmsearch's lines about the run. Other arguments: see Report."""
        from ._reports import Report
        report = Report(kind, path, search=self._options, **settings)
        if header:
            if any(result.long_targets or result.scan for result in self):
                raise _b.UsageError("reports of nhmmer and of scans have no header here", where="header")
            report.add_header()
        for result in self:
            report.add(result)
        return report.complete()

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        cutoffs = self.options["cutoffs"]
        return _results_of, (list(self), self.statistics, _b.bytes_of(self._options),
                             cutoffs if isinstance(cutoffs, dict) else None)

    def __copy__(self) -> Results:
        return Results(self, self.statistics, self._options)

    def __deepcopy__(self, memo: Any) -> Results:
        return Results(self, dict(self.statistics), self._options)

    def __repr__(self) -> str:
        return f"<hmmjit.Results of {len(self)} models, {sum(len(r.reported) for r in self)} targets reported>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.table()._repr_html_()}"


def _results_of(results: List[Result], statistics: Dict[str, Any], options: bytes,
                cutoffs: Optional[Dict[str, Any]] = None) -> Results:
    struct = cast(Any, _b.SearchOptions.from_buffer_copy(options))
    if cutoffs:
        struct._keep = set_table(struct, cutoffs)
    return Results(results, statistics, struct)
