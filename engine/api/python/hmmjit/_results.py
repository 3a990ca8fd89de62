"""What searches find: results, hits, domains, alignments, tables of them."""
from __future__ import annotations

import contextlib
import ctypes
import html
import os
import tempfile
from ctypes import byref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union, cast, overload

from . import _binding as _b
from ._common import attribute_error, choose

if TYPE_CHECKING:
    from ._arrow import Capsule
    from ._common import PathLike
    from ._msa import MSA

# What other interfaces and programs call it.
_OTHER_NAMES = {"evalue": "e_value", "i_evalue": "independent_e_value", "c_evalue": "conditional_e_value",
                "ali_from": "alignment_from", "ali_to": "alignment_to", "target_from": "alignment_from",
                "target_to": "alignment_to", "hmm_from": "model_from", "hmm_to": "model_to",
                "env_from": "envelope_from", "env_to": "envelope_to", "acc": "accuracy", "desc": "description",
                "hmm_sequence": "model", "target_sequence": "sequence", "identity_sequence": "match",
                "posterior_probabilities": "posterior", "bitscore": "score", "query": "name"}


class _Record:
    """Attributes taken from a C struct; texts are decoded when asked for."""

    __slots__ = ("_owner", "_struct")

    def __init__(self, owner: Result, struct: Any) -> None:
        self._owner, self._struct = owner, struct  # the owner keeps the struct's texts alive

    if not TYPE_CHECKING:
        def __getattr__(self, name):
            raise attribute_error(self, name, _OTHER_NAMES)

    def __copy__(self) -> Any:
        return self  # immutable

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class Alignment(_Record):
    """The alignment of one domain: rows of equal length, one character a column. All are empty where the
    search kept no alignments. As text, it is in blocks with names and coordinates."""

    __slots__ = ()

    @property
    def model(self) -> str:
        """Consensus of the model, '.' at insertions."""
        return _b.text(self._struct.model)

    @property
    def match(self) -> str:
        """Letters where both agree, '+' where the model favours the residue."""
        return _b.text(self._struct.match)

    @property
    def sequence(self) -> str:
        """Residues of the target, '-' at deletions, lower case at insertions."""
        return _b.text(self._struct.sequence)

    @property
    def posterior(self) -> str:
        """``0`` to ``9`` and ``*``: posterior probability of each residue."""
        return _b.text(self._struct.posterior)

    @property
    def reference(self) -> str:
        """Reference annotation of the model; empty where it has none."""
        return _b.text(self._struct.reference)

    @property
    def structure(self) -> str:
        """Structure annotation of the model; empty where it has none."""
        return _b.text(self._struct.structure)

    def blocks(self, width: int = 80) -> str:
        """The rows in blocks of at most `width` columns of alignment, with names and coordinates."""
        model, match, sequence, posterior = self.model, self.match, self.sequence, self.posterior
        names = self._owner.name, _b.text(self._owner._hit_array()[self._struct.hit].name)
        at = [self._struct.model_from, self._struct.alignment_from]
        wide = max(len(name) for name in names)
        digits = len(str(max(self._struct.model_to, self._struct.alignment_to)))
        blocks = []
        for start in range(0, len(model), max(1, width)):
            lines = []
            for row, text, gap in ((0, model, "."), (1, sequence, "-")):
                piece = text[start:start + width]
                count = len(piece) - piece.count(gap)
                first, last = (str(at[row]), str(at[row] + count - 1)) if count else ("-", "-")
                at[row] += count
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
        return _alignment_of, (Domain(self._owner, self._struct),)


def _alignment_of(domain: Domain) -> Alignment:
    return domain.alignment


class Domain(_Record):
    """One domain. Coordinates are 1-based and inclusive."""

    __slots__ = ()

    @property
    def envelope_from(self) -> int:
        """First residue of the envelope, on the target."""
        return int(self._struct.envelope_from)

    @property
    def envelope_to(self) -> int:
        """Last residue of the envelope, on the target."""
        return int(self._struct.envelope_to)

    @property
    def alignment_from(self) -> int:
        """First residue that is aligned, on the target."""
        return int(self._struct.alignment_from)

    @property
    def alignment_to(self) -> int:
        """Last residue that is aligned, on the target."""
        return int(self._struct.alignment_to)

    @property
    def model_from(self) -> int:
        """First position of the model that is aligned."""
        return int(self._struct.model_from)

    @property
    def model_to(self) -> int:
        """Last position of the model that is aligned."""
        return int(self._struct.model_to)

    @property
    def score(self) -> float:
        """Bits."""
        return float(self._struct.score)

    @property
    def bias(self) -> float:
        """Bits taken off for composition."""
        return float(self._struct.bias)

    @property
    def conditional_e_value(self) -> float:
        """Given that the target is a hit (c-Evalue)."""
        return float(self._struct.conditional_e_value)

    @property
    def independent_e_value(self) -> float:
        """As if it were the only domain (i-Evalue)."""
        return float(self._struct.independent_e_value)

    @property
    def accuracy(self) -> float:
        """Mean posterior probability of the aligned residues, 0 to 1."""
        return float(self._struct.accuracy)

    @property
    def reported(self) -> bool:
        """Satisfies the reporting thresholds, as does its target."""
        return bool(self._struct.reported)

    @property
    def included(self) -> bool:
        """Satisfies the inclusion thresholds, too."""
        return bool(self._struct.included)

    @property
    def alignment(self) -> Alignment:
        return Alignment(self._owner, self._struct)

    @property
    def hit(self) -> Hit:
        """The target it is on."""
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


class Hit(_Record):
    """One target."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return _b.text(self._struct.name)

    @property
    def accession(self) -> str:
        return _b.text(self._struct.accession)

    @property
    def description(self) -> str:
        return _b.text(self._struct.description)

    @property
    def index(self) -> int:
        """Position in the input, from 0."""
        return int(self._struct.index)

    @property
    def length(self) -> int:
        """Residues."""
        return int(self._struct.length)

    @property
    def e_value(self) -> float:
        return float(self._struct.e_value)

    @property
    def score(self) -> float:
        """Bits, of the whole target."""
        return float(self._struct.score)

    @property
    def bias(self) -> float:
        """Bits taken off for composition."""
        return float(self._struct.bias)

    @property
    def expected_domains(self) -> float:
        """Mean number over all paths (Forward)."""
        return float(self._struct.expected_domains)

    @property
    def regions(self) -> int:
        return int(self._struct.regions)

    @property
    def clustered(self) -> int:
        """Regions that were resolved by clustering sampled paths."""
        return int(self._struct.clustered)

    @property
    def overlaps(self) -> int:
        """Envelopes that overlap their neighbour."""
        return int(self._struct.overlaps)

    @property
    def envelopes(self) -> int:
        return int(self._struct.envelopes)

    @property
    def reported(self) -> bool:
        """Satisfies the reporting thresholds."""
        return bool(self._struct.reported)

    @property
    def included(self) -> bool:
        """Satisfies the inclusion thresholds, too."""
        return bool(self._struct.included)

    @property
    def domains(self) -> List[Domain]:
        """All domains, by position."""
        first = self._struct.first_domain
        array = self._owner._domain_array()
        return [Domain(self._owner, array[i]) for i in range(first, first + self._struct.domains)]

    @property
    def best_domain(self) -> Domain:
        return self.domains[int(self._struct.best_domain)]

    def __repr__(self) -> str:
        return f"<hmmjit.Hit {self.name!r}, {self.score:.1f} bits, E {self.e_value:.2g}>"

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        place = ctypes.addressof(self._struct) - ctypes.addressof(self._owner._hit_array())
        return _hit_of, (self._owner, place // ctypes.sizeof(_b.Hit))


def _hit_of(result: Result, index: int) -> Hit:
    return result[index]


_SHOWN_ROWS = 20


class Table(Dict[str, Any]):
    """Columns by name, in order: NumPy arrays where NumPy is installed, else lists.

    `pandas.DataFrame(table)`, `polars.DataFrame(table)` and `pyarrow.table(table)` take it as it is; what
    reads the Arrow C stream interface takes it without copies of its own.
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

    def to_polars(self) -> Any:
        """A polars.DataFrame."""
        import polars
        types = {b"U": polars.Utf8, b"l": polars.Int64, b"b": polars.Boolean, b"g": polars.Float64}
        return polars.DataFrame({name: list(values) for name, values in self.items()},
                                schema={name: types[COLUMN_TYPES.get(name, b"g")] for name in self})

    def to_arrow(self) -> Any:
        """A pyarrow.Table, with the types of the columns where there are no rows, too. Needs pyarrow 14 or later."""
        import pyarrow  # type: ignore[import-untyped,unused-ignore]
        return pyarrow.RecordBatchReader.from_stream(self).read_all()

    def to_parquet(self, path: Union[str, "os.PathLike[str]"], **options: Any) -> None:
        """Writes a Parquet file with pyarrow (`pip install 'hmmjit[parquet]'`); ImportError where that is missing.

        `options` are those of pyarrow.parquet.write_table, as compression="zstd". The file appears when it is
        complete; an error leaves none, and an older one of that name as it was.
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
            with contextlib.suppress(FileNotFoundError):  # pyarrow removes what it could not write
                os.unlink(temporary)
            raise

    def __arrow_c_stream__(self, requested_schema: Optional[Capsule] = None) -> Capsule:
        """The Arrow PyCapsule interface: one record batch."""
        from ._arrow import stream_of
        return stream_of(self)

    def _repr_html_(self) -> str:
        def cell(value: Any) -> str:
            return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))

        head = "".join(f"<th>{html.escape(name)}</th>" for name in self)
        body = "".join("<tr>" + "".join(f"<td>{cell(values[i])}</td>" for values in self.values()) + "</tr>"
                       for i in range(min(self.rows, _SHOWN_ROWS)))
        more = f"<p>{self.rows - _SHOWN_ROWS} more rows</p>" if self.rows > _SHOWN_ROWS else ""
        return f"<table><tr>{head}</tr>{body}</table>{more}"


# Arrow's types of columns that are not float64.
COLUMN_TYPES = {**{name: b"U" for name in ("model", "model_accession", "name", "accession", "description")},
                **{name: b"l" for name in ("length", "model_from", "model_to", "alignment_from", "alignment_to",
                                           "envelope_from", "envelope_to")}, "included": b"b"}
_NUMPY_TYPES = {b"U": "object", b"l": "int64", b"b": "bool", b"g": "float64"}
_HIT_COLUMNS = ("name", "accession", "description", "length", "e_value", "score", "bias", "expected_domains",
                "included")
_DOMAIN_COLUMNS = ("independent_e_value", "conditional_e_value", "score", "bias", "model_from", "model_to",
                   "alignment_from", "alignment_to", "envelope_from", "envelope_to", "accuracy", "included")


class Result:
    """The hits of one model: a sequence of Hit, in hmmsearch's order, best first.

    It holds every candidate; `reported` are those that satisfy the thresholds. A pickle holds all of it, for
    processes that have the same version of the library.
    """

    index: int  #: of the model in the input, from 0
    name: str  #: of the model, or of the sequence it was built from
    accession: str
    description: str
    length: int  #: of the model
    Z: float  #: targets assumed for E-values
    domZ: float  #: targets assumed for conditional E-values
    seconds: float
    has_alignments: bool
    counts: Dict[str, int]  #: targets searched, their residues, and targets that passed each filter

    def __init__(self, pointer: Any) -> None:
        self._take(_b.Handle("result", _b.result_copy, pointer))

    def _take(self, handle: _b.Handle) -> None:
        self._handle = handle
        info = _b.ResultInfo()
        _b.result_get_info(self._handle.pointer, byref(info))
        self.index, self.length = info.model_index, info.model_length
        self.name, self.accession, self.description = (
            _b.text(v) for v in (info.model_name, info.model_accession, info.model_description))
        self.Z, self.domZ, self.seconds = info.Z, info.domZ, info.seconds
        self.has_alignments = bool(info.has_alignments)
        self.counts = {name: getattr(info.counts, name) for name, *_ in _b.FilterCounts._fields_}
        self._sizes = info.hits, info.domains
        self._arrays: Dict[Any, Any] = {}

    def _array(self, kind: Any, count: int, get: Any) -> Any:
        if kind not in self._arrays:
            array = (kind * count)()
            if count:
                array[0].size = ctypes.sizeof(kind)
                get(self._handle.pointer, 0, count, array)
            self._arrays[kind] = array
        return self._arrays[kind]

    def _hit_array(self) -> Any:
        return self._array(_b.Hit, self._sizes[0], _b.result_get_hits)

    def _domain_array(self) -> Any:
        return self._array(_b.Domain, self._sizes[1], _b.result_get_domains)

    def __len__(self) -> int:
        """Candidates, reported or not."""
        return int(self._sizes[0])

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
        """Hits that satisfy the inclusion thresholds, too."""
        return [h for h in self if h.included]

    def table(self, of: str = "targets") -> Table:
        """Columns of the reported targets, or of the reported domains; see Results.table."""
        return make_table([self], of)

    def to_msa(self) -> MSA:
        """The included domains, aligned by the model: what `-A` writes. UsageError where the search kept no
        alignments; without an included domain the alignment has no rows."""
        from ._msa import MSA
        from ._reports import Report
        report = Report("stockholm", text_width=0)
        report.add(self)
        return MSA._of_stockholm(report.complete() or b"", self.name)

    def __copy__(self) -> Result:
        return self  # immutable

    def __deepcopy__(self, memo: Any) -> Result:
        return self

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
    domains = choose("table", of, {"targets": 0, "domains": 1})
    columns: Dict[str, List[Any]] = {"model": [], "model_accession": []}
    if not domains:
        columns.update((n, []) for n in _HIT_COLUMNS)
    else:
        columns.update((n, []) for n in ("name", "accession", "length", "e_value", "target_score"))
        columns.update((n, []) for n in _DOMAIN_COLUMNS)
    for result in results:
        hits = result._hit_array()
        names = [(_b.text(h.name), _b.text(h.accession)) if h.reported else None for h in hits]
        rows = 0
        if not domains:
            for hit, texts in zip(hits, names):
                if texts is None:
                    continue
                rows += 1
                values = (*texts, _b.text(hit.description), hit.length, hit.e_value, hit.score, hit.bias,
                          hit.expected_domains, bool(hit.included))
                for name, value in zip(_HIT_COLUMNS, values):
                    columns[name].append(value)
        else:
            for domain in result._domain_array():
                hit, texts = hits[domain.hit], names[domain.hit]
                if texts is None or not domain.reported:
                    continue
                rows += 1
                for name, value in zip(("name", "accession", "length", "e_value", "target_score"),
                                       (*texts, hit.length, hit.e_value, hit.score)):
                    columns[name].append(value)
                for name in _DOMAIN_COLUMNS:
                    value = getattr(domain, name)
                    columns[name].append(bool(value) if name == "included" else value)
        columns["model"] += [result.name] * rows
        columns["model_accession"] += [result.accession] * rows
    return Table(columns)


class Results(List[Result]):
    """A list of Result, one per model in input order, with the run's `statistics` (a dict)."""

    statistics: Dict[str, Any]

    def __init__(self, results: Iterable[Result], statistics: Dict[str, Any], options: Any) -> None:
        super().__init__(results)
        self.statistics, self._options = statistics, options

    def table(self, of: str = "targets") -> Table:
        """One row per reported target ("targets") or reported domain ("domains"), in hmmsearch's order."""
        return make_table(self, of)

    def merge(self, *others: Results) -> Results:
        """These and the results of the same models against other targets, with the same options, as one: what a
        search of all targets, one set after the other, gives. UsageError for results by cutoffs of models; of
        searches on many machines, merge parts. Counters and seconds of the statistics are sums."""
        if any(len(other) != len(self) for other in others):
            raise _b.UsageError("results of different numbers of models cannot be merged")
        merged = []
        for same in zip(self, *others):
            pointers = (ctypes.c_void_p * len(same))(*(result._handle.pointer.value for result in same))
            merged.append(Result.__new__(Result))
            merged[-1]._take(_b.Handle("result", _b.result_merge, pointers, len(same), byref(self._options)))
        statistics = dict(self.statistics)
        for name, value in statistics.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and name not in (
                    "models", "threads", "passes", "peak_resident_bytes"):
                statistics[name] = value + sum(other.statistics[name] for other in others)
        statistics["hits_reported"] = sum(len(result.reported) for result in merged)
        statistics["domains_reported"] = sum(d.reported for r in merged for h in r.reported for d in h.domains)
        statistics["json"] = ""  # of one search
        return Results(merged, statistics, self._options)

    def report(self, kind: str = "tblout", path: Optional[PathLike] = None, *, header: bool = False,
               **settings: Any) -> Optional[bytes]:
        """The output of a kind (see Report). Returned as bytes, or written to `path`, which appears when
        it is complete. `header`: the main report begins with the lines about the run. Other arguments
        as Report takes them."""
        from ._reports import Report
        report = Report(kind, path, search=self._options, **settings)
        if header:
            report.add_header()
        for result in self:
            report.add(result)
        return report.complete()

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        return _results_of, (list(self), self.statistics, _b.bytes_of(self._options))

    def __copy__(self) -> Results:
        return Results(self, self.statistics, self._options)

    def __deepcopy__(self, memo: Any) -> Results:
        return Results(self, dict(self.statistics), self._options)

    def __repr__(self) -> str:
        return f"<hmmjit.Results of {len(self)} models, {sum(len(r.reported) for r in self)} targets reported>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.table()._repr_html_()}"


def _results_of(results: List[Result], statistics: Dict[str, Any], options: bytes) -> Results:
    return Results(results, statistics, cast(Any, _b.SearchOptions.from_buffer_copy(options)))
