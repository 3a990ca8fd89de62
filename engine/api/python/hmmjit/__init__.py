"""Profile-HMM search with hmmsearch's results, in this process.

    import hmmjit
    for result in hmmjit.search("Pfam.hmm", "proteome.fasta", cutoffs="gathering"):
        for hit in result.reported:
            print(result.name, hit.name, hit.score, hit.e_value)

    table = hmmjit.search(models, targets).table()      # columns; pandas.DataFrame(table) works

Models and targets may be paths, bytes, or iterables of objects, PyHMMER's among them. Scores,
E-values and their order are those of hmmsearch, whatever the threads or the device. The search runs
outside the interpreter's lock, so that other Python threads go on, and several searches may run at
once. Failures are exceptions derived from hmmjit.Error.
"""
import ctypes
import io
import json
import os
import queue
import threading
from ctypes import byref, c_int32, c_uint64, c_void_p

from . import _binding as _b
from ._binding import (Cancelled, CompileError, Error, InputError, InternalError, NoDeviceError, OutputError,
                       ResourcesError, UsageError)

__all__ = ["Alignment", "Cache", "Cancelled", "CompileError", "Domain", "Error", "Hit", "InputError",
           "InternalError", "Model", "Models", "NoDeviceError", "OutputError", "Report", "ResourcesError",
           "Result", "Results", "SearchIterator", "Table", "Targets", "UsageError", "build_database",
           "database_info", "devices", "plan", "search", "search_iter", "search_to_files", "verify_database"]

__version__ = _b.text(_b.library.hmmjit_version())

_ALPHABETS = {"amino": 0, "dna": 1, "rna": 2}
_CUTOFFS = {None: 0, "gathering": 1, "noise": 2, "trusted": 3, "ga": 1, "nc": 2, "tc": 3}
_REPORTS = {"main": 0, "tblout": 1, "domtblout": 2, "pfamtblout": 3, "stockholm": 4, "tsv": 5, "json": 6,
            "a3m": 7, "scan_tblout": 8, "scan_domtblout": 9, "html": 10}


def _choose(what, name, choices):
    key = name.lower() if isinstance(name, str) else name
    if key not in choices:
        raise UsageError(f"no {what} {name!r}: " + ", ".join(repr(c) for c in choices))
    return choices[key]


def _integer(name, value, low, high):
    """A number that fits the C type: ctypes would cut it silently."""
    try:
        number = value.__index__()
    except AttributeError:
        raise UsageError(f"{name} takes an integer, not {value!r}") from None
    if not low <= number <= high:
        raise UsageError(f"{name} takes {low} to {high}, not {number}")
    return number


_INT32, _INT64, _UINT64 = 2**31 - 1, 2**63 - 1, 2**64 - 1


def _is_path(source):
    return isinstance(source, (str, os.PathLike))


def _contents(source):
    """The bytes of an open file of Python's own, anything else as it is."""
    if isinstance(source, io.IOBase):
        source = source.read()
        return source.encode("utf-8", "surrogateescape") if isinstance(source, str) else source
    return source


class Model:
    """What is known of one profile: name, accession, description, length, alphabet, consensus, cutoffs.

    Cutoffs are pairs of bit scores (sequence, domain), or None.
    """

    def __init__(self, owner, index=0):
        # A handle with this model alone: a Model is a source of models, too.
        self._handle = _b.Handle("models", _b.models_create)
        _b.models_add(self._handle.pointer, owner, index)
        info = _b.ModelInfo()
        _b.models_get(self._handle.pointer, 0, byref(info))
        self.name, self.accession, self.description = (_b.text(v) for v in (info.name, info.accession,
                                                                            info.description))
        self.length, self.consensus = info.length, _b.text(info.consensus)
        self.alphabet = next(n for n, v in _ALPHABETS.items() if v == info.alphabet)
        for name in ("gathering", "trusted", "noise"):
            pair = getattr(info, name), getattr(info, name + "_domain")
            setattr(self, name, None if pair[0] != pair[0] else pair)

    def __repr__(self):
        return f"<hmmjit.Model {self.name!r}, {self.length} positions>"


class Models:
    """Profiles to search with.

    `source`: a path, read during each search in bounded memory; bytes with the contents of such a
    file, or it opened; a Model or Models; PyHMMER's HMM; or an iterable of any of these (an HMMFile, a
    list of paths, say), whose files are read now. Formats: HMMER3 text and binary, HMMER2 text, plain,
    gzip or zstd.

    Iterating yields Models, reading the file of a path. Immutable: several threads may use one.
    """

    def __init__(self, source):
        source = _contents(source)
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
            self._handle = _b.Handle("models", _b.models_from_memory, data, len(data), None)
        elif _is_path(source):
            self._handle = _b.Handle("models", _b.models_from_file, _b.encode(source))
        else:
            self._handle = _b.Handle("models", _b.models_create)
            self._add(source)

    @classmethod
    def load(cls, path):
        """Reads a file now and keeps its models."""
        self = cls.__new__(cls)
        self._handle = _b.Handle("models", _b.models_load, _b.encode(path))
        return self

    def _add(self, source):
        one = isinstance(source, (Model, Models)) or hasattr(source, "write") or _is_configured(source)
        if not one and not hasattr(source, "__iter__"):
            raise TypeError(f"no models: {type(source).__name__}; give a path, bytes, Model, Models, PyHMMER's HMM, "
                            "or an iterable of these")
        for item in [source] if one else source:
            if isinstance(item, (Model, Models)):
                other = item
            elif _is_path(item):
                other = Models.load(item)
            elif _is_configured(item):
                raise TypeError(f"a {type(item).__name__} is a profile configured for its own search, which does not "
                                "hold its model any more: give the HMM it was made of")
            elif hasattr(item, "write"):  # pyhmmer.plan7.HMM
                data = io.BytesIO()
                item.write(data, binary=True)  # exact; as text, probabilities would be rounded
                other = Models(data.getvalue())
            else:
                other = _contents(item)
                if not isinstance(other, (bytes, bytearray, memoryview)):
                    raise TypeError(f"no model: {type(item).__name__}")
                other = Models(other)
            pointer = other._handle.pointer
            if _b.models_count(pointer) > 0:
                for i in range(_b.models_count(pointer)):
                    _b.models_add(self._handle.pointer, pointer, i)
            else:
                for model in other:
                    _b.models_add(self._handle.pointer, model._handle.pointer, 0)

    def __len__(self):
        """Models in memory; 0 for those of a path."""
        return _b.models_count(self._handle.pointer)

    def __getitem__(self, index):
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return Model(self._handle.pointer, index)

    def __iter__(self):
        if len(self) > 0:
            return (self[i] for i in range(len(self)))
        models, failure = [], []

        def visit(_, one):
            try:
                models.append(Model(one))
                return 0
            except BaseException as error:  # noqa: B902  it leaves through the caller
                failure.append(error)
                return 1

        _b.models_for_each(self._handle.pointer, _b.VisitCallback(visit), None)
        if failure:
            raise failure[0]
        return iter(models)


def _is_configured(item):
    """PyHMMER's Profile and OptimizedProfile."""
    return type(item).__name__ in ("Profile", "OptimizedProfile") and hasattr(item, "msv_filter")


def _residues(sequence):
    """Name, residues, accession and description of one target, whatever its type."""
    if isinstance(sequence, (tuple, list)):
        return (*sequence, None, None)[:4] if len(sequence) < 4 else tuple(sequence)
    if hasattr(sequence, "textize"):  # pyhmmer.easel.DigitalSequence
        sequence = sequence.textize()
    if hasattr(sequence, "sequence") and hasattr(sequence, "name"):  # pyhmmer.easel.TextSequence
        return (sequence.name, sequence.sequence, getattr(sequence, "accession", None),
                getattr(sequence, "description", None))
    if hasattr(sequence, "seq") and hasattr(sequence, "id"):  # Bio.SeqRecord
        return sequence.id, str(sequence.seq), None, getattr(sequence, "description", None)
    raise TypeError(f"no sequence: {type(sequence).__name__}; give (name, residues) pairs, PyHMMER's or "
                    "Biopython's objects")


class Targets:
    """Sequences to search.

    `source`: a path, read during each search; bytes with the contents of such a file, or it opened; a
    mapping of names to residues; or an iterable of (name, residues[, accession[, description]]), of PyHMMER's
    sequences (a SequenceFile or a block, say), of Biopython's records, or of paths and Targets, which are
    read now. Target databases (.hjdb) are taken like sequence files. `alphabet`: "amino", "dna", "rna", for
    what is not a path. `format`: None, or a name of hmmsearch's --tformat.

    Names and accessions have no blanks or control characters, descriptions are one line (UsageError).
    Immutable: several threads may use one.
    """

    def __init__(self, source, alphabet="amino", format=None):
        alphabet, format = _choose("alphabet", alphabet, _ALPHABETS), _b.encode(format)
        source = _contents(source)
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
            self._handle = _b.Handle("targets", _b.targets_from_memory, data, len(data), alphabet, format, None)
        elif _is_path(source):
            self._handle = _b.Handle("targets", _b.targets_from_file, _b.encode(source), format)
        else:
            self._handle = _b.Handle("targets", _b.targets_create, alphabet)
            for sequence in source.items() if hasattr(source, "items") else source:
                if _is_path(sequence):
                    sequence = Targets._of_file(sequence, format)
                if isinstance(sequence, Targets):
                    _b.targets_append(self._handle.pointer, sequence._handle.pointer)
                    continue
                name, residues, accession, description = (_b.encode(v) for v in _residues(sequence))
                _b.targets_add(self._handle.pointer, name, accession, description, residues, len(residues))

    @classmethod
    def _of_file(cls, path, format):
        self = cls.__new__(cls)
        self._handle = _b.Handle("targets", _b.targets_from_file, _b.encode(path), format)
        return self

    @classmethod
    def load(cls, path, alphabet="amino", format=None):
        """Reads a file now and keeps its sequences, a byte per residue."""
        self = cls.__new__(cls)
        self._handle = _b.Handle("targets", _b.targets_load, _b.encode(path),
                                 _choose("alphabet", alphabet, _ALPHABETS), _b.encode(format))
        return self

    def __len__(self):
        """Sequences in memory; 0 for those of a path."""
        return _b.targets_count(self._handle.pointer)

    @property
    def residues(self):
        return _b.targets_residues(self._handle.pointer)


class _Record:
    """Attributes taken from a C struct; texts are decoded when asked for."""

    __slots__ = ("_owner", "_struct")
    _texts = ()

    def __init__(self, owner, struct):
        self._owner, self._struct = owner, struct  # the owner keeps the struct's texts alive

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._struct, name)
        return _b.text(value) if name in self._texts else value


class Alignment(_Record):
    """Rows of one domain's alignment, equally long: model, match, sequence, posterior, and, where the
    model has them, reference and structure (else empty)."""

    __slots__ = ()
    _texts = ("model", "match", "sequence", "posterior", "reference", "structure")

    def __str__(self):
        return "\n".join((self.model, self.match, self.sequence, self.posterior))


class Domain(_Record):
    """One domain: envelope_from, envelope_to, alignment_from, alignment_to (on the target),
    model_from, model_to, score and bias (bits), conditional_e_value, independent_e_value, accuracy,
    reported, included, alignment. Coordinates are 1-based and inclusive."""

    __slots__ = ()

    @property
    def reported(self):
        return bool(self._struct.reported)

    @property
    def included(self):
        return bool(self._struct.included)

    @property
    def alignment(self):
        return Alignment(self._owner, self._struct)

    def __repr__(self):
        return (f"<hmmjit.Domain {self.envelope_from}-{self.envelope_to}, {self.score:.1f} bits, "
                f"i-E {self.independent_e_value:.2g}>")


class Hit(_Record):
    """One target: name, accession, description, index (position in the input), length, e_value, score
    and bias (bits), expected_domains, reported, included, domains, best_domain."""

    __slots__ = ()
    _texts = ("name", "accession", "description")

    @property
    def reported(self):
        return bool(self._struct.reported)

    @property
    def included(self):
        return bool(self._struct.included)

    @property
    def domains(self):
        """All domains, by position."""
        first = self._struct.first_domain
        return [Domain(self._owner, d) for d in self._owner._domain_array()[first:first + self._struct.domains]]

    @property
    def best_domain(self):
        return self.domains[self._struct.best_domain]

    def __repr__(self):
        return f"<hmmjit.Hit {self.name!r}, {self.score:.1f} bits, E {self.e_value:.2g}>"


class Table(dict):
    """Columns by name, in order: NumPy arrays where NumPy is installed, else lists.
    `pandas.DataFrame(table)` takes it as it is."""

    def __init__(self, columns):
        try:
            import numpy
        except ImportError:
            numpy = None
        super().__init__((name, values if numpy is None else
                          numpy.array(values, dtype=object if values and isinstance(values[0], str) else None))
                         for name, values in columns.items())

    def __len__(self):
        """Rows."""
        return len(next(iter(self.values()), []))

    def to_pandas(self):
        import pandas
        return pandas.DataFrame(dict(self))


_HIT_COLUMNS = ("name", "accession", "description", "length", "e_value", "score", "bias", "expected_domains",
                "included")
_DOMAIN_COLUMNS = ("independent_e_value", "conditional_e_value", "score", "bias", "model_from", "model_to",
                   "alignment_from", "alignment_to", "envelope_from", "envelope_to", "accuracy", "included")


class Result:
    """The hits of one model: a sequence of Hit, in hmmsearch's order, best first.

    It holds every candidate; `reported` are those that satisfy the thresholds. Attributes: index (of
    the model in the input), name, accession, description, length (of the model), Z, domZ, seconds,
    has_alignments, and `counts`, the targets that passed each filter.
    """

    def __init__(self, pointer):
        self._handle = _b.Handle("result", _b.result_copy, pointer)
        info = _b.ResultInfo()
        _b.result_get_info(self._handle.pointer, byref(info))
        self.index, self.length = info.model_index, info.model_length
        self.name, self.accession, self.description = (
            _b.text(v) for v in (info.model_name, info.model_accession, info.model_description))
        self.Z, self.domZ, self.seconds = info.Z, info.domZ, info.seconds
        self.has_alignments = bool(info.has_alignments)
        self.counts = {name: getattr(info.counts, name) for name, _ in _b.FilterCounts._fields_}
        self._sizes = info.hits, info.domains
        self._arrays = {}

    def _array(self, kind, count, get):
        if kind not in self._arrays:
            array = (kind * count)()
            if count:
                array[0].size = ctypes.sizeof(kind)
                get(self._handle.pointer, 0, count, array)
            self._arrays[kind] = array
        return self._arrays[kind]

    def _hit_array(self):
        return self._array(_b.Hit, self._sizes[0], _b.result_get_hits)

    def _domain_array(self):
        return self._array(_b.Domain, self._sizes[1], _b.result_get_domains)

    def __len__(self):
        return self._sizes[0]

    def __getitem__(self, index):
        hits = self._hit_array()[index]
        return [Hit(self, h) for h in hits] if isinstance(index, slice) else Hit(self, hits)

    def __iter__(self):
        return (Hit(self, h) for h in self._hit_array())

    @property
    def reported(self):
        return [h for h in self if h.reported]

    @property
    def included(self):
        return [h for h in self if h.included]

    def table(self, of="targets"):
        """Columns of the reported targets, or of the reported domains; see Results.table."""
        return _table([self], of)

    def __repr__(self):
        return f"<hmmjit.Result of {self.name!r}, {len(self.reported)} reported>"


def _table(results, of):
    kind = _choose("table", of, {"targets": False, "domains": True})
    columns = {"model": [], "model_accession": []}
    if not kind:
        columns.update((n, []) for n in _HIT_COLUMNS)
    else:
        columns.update((n, []) for n in ("name", "accession", "length", "e_value", "target_score"))
        columns.update((n, []) for n in _DOMAIN_COLUMNS)
    for result in results:
        hits = result._hit_array()
        names = [(_b.text(h.name), _b.text(h.accession)) if h.reported else None for h in hits]
        rows = 0
        if not kind:
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


class Results(list):
    """A list of Result, one per model in input order, with the run's `statistics` (a dict)."""

    def __init__(self, results, statistics, options):
        super().__init__(results)
        self.statistics, self._options = statistics, options

    def table(self, of="targets"):
        """One row per reported target ("targets") or reported domain ("domains"), in hmmsearch's order."""
        return _table(self, of)

    def report(self, kind="tblout", path=None, *, header=False, **settings):
        """The output of a kind (see Report). Returned as bytes, or written to `path`, which appears when
        it is complete. `header`: the main report begins with the lines about the run. Other arguments
        as Report takes them."""
        report = Report(kind, path, search=self._options, **settings)
        if header:
            report.add_header()
        for result in self:
            report.add(result)
        return report.complete()


class Report:
    """One output, made of results in model order.

    `kind`: "main", "tblout", "domtblout", "pfamtblout", "stockholm", "tsv", "json", "a3m" (these two and
    "stockholm" from results with alignments), "html" (one page), and "scan_tblout", "scan_domtblout":
    hmmscan's tables, of a search whose Z was set, to the number of models. `path`: a file, which appears
    when it is complete; None: the text is returned by complete().

    `text_width`: of the main report, 120 columns or more, 0 for no limit. `title`, `top`: of the page;
    how many targets it shows, 0 for all. `query_file`, `target_file`, `settings`, `date` are printed in
    comment lines. `search`: options of the search, as search() takes them, in a dict. One thread at a
    time.
    """

    def __init__(self, kind="tblout", path=None, *, search=None, prefer_accession=False, alignments=True,
                 text_width=120, title=None, top=0, query_file="", target_file="", settings="", date=""):
        self._search = search if isinstance(search, _b.SearchOptions) else _make_options(search or {})
        self._options = _b.ReportOptions(
            prefer_accession=bool(prefer_accession), alignments=bool(alignments),
            text_width=_integer("text_width", text_width, 0, _INT32), search=ctypes.pointer(self._search),
            page_title=_b.encode(title), page_targets=_integer("top", top, 0, _UINT64))
        self._run = _b.RunInfo(query_file=_b.encode(query_file), target_file=_b.encode(target_file),
                               settings=_b.encode(settings), date=_b.encode(date))
        self._path = path
        self._handle = _b.Handle("report", _b.report_create, _choose("report", kind, _REPORTS),
                                 None if path is None else _b.encode(path), byref(self._options))

    def add(self, result):
        """The next model's Result."""
        _b.report_add(self._handle.pointer, result._handle.pointer)

    def add_text(self, text):
        """Text at this place of the output."""
        _b.report_add_text(self._handle.pointer, _b.encode(text))

    def add_header(self):
        """The lines that open hmmsearch's main report."""
        header = _b.Handle("text", _b.main_report_header, byref(self._run), byref(self._options))
        self.add_text(_b.take_text(header))

    def complete(self):
        """Writes the closing lines; gives the file its name, or returns the text as bytes."""
        _b.report_complete(self._handle.pointer, byref(self._run))
        if self._path is None:
            return _b.take_text(_b.Handle("text", _b.report_take_text, self._handle.pointer))
        return None


class Cache:
    """The kernel cache of GPU searches. Unset arguments: the environment's (HMMJIT_CACHE_*).

    `mode`: "off", "ro", "rw", "refresh" or "strict".
    """

    _MODES = {None: -1, "off": 0, "ro": 1, "rw": 2, "refresh": 3, "strict": 4}

    def __init__(self, directory=None, mode=None, max_bytes=0):
        settings = _b.CacheSettings(directory=None if directory is None else _b.encode(directory),
                                    mode=_choose("cache mode", mode, self._MODES),
                                    max_bytes=_integer("max_bytes", max_bytes, 0, _UINT64))
        self._handle = _b.Handle("cache", _b.cache_open, byref(settings))

    @property
    def directory(self):
        return _b.text(_b.cache_directory(self._handle.pointer))

    @property
    def statistics(self):
        out = _b.CacheStatistics()
        _b.cache_get_statistics(self._handle.pointer, byref(out))
        return {name: getattr(out, name) for name, _ in out._fields_[1:]}

    def _counted(self, function, *arguments):
        count = c_uint64()
        function(self._handle.pointer, *arguments, byref(count))
        return count.value

    def trim(self, max_bytes=0):
        """Removes least recently used kernels; returns how many."""
        return self._counted(_b.cache_trim, max_bytes)

    def clear(self):
        """Removes all kernels; returns how many."""
        return self._counted(_b.cache_clear)

    def export(self, path):
        """Writes all kernels into one file; returns how many."""
        return self._counted(_b.cache_export, _b.encode(path))

    def import_(self, path):
        """Adds the kernels of such a file; returns how many were new. Import what you trust only."""
        return self._counted(_b.cache_import, _b.encode(path))


_REAL_OPTIONS = ("E", "T", "domE", "domT", "incE", "incT", "incdomE", "incdomT", "Z", "domZ", "F1", "F2", "F3")
_INTEGER_OPTIONS = {"seed": 2**32 - 1, "threads": _INT32, "memory": _UINT64, "vram": _UINT64, "verify": _INT32,
                    "target_count": _INT64}
_FLAG_OPTIONS = {"bias_filter": "bias_filter", "null2": "null2", "max": "max_sensitivity",
                 "alignments": "keep_alignments"}


def _make_options(options):
    out = _b.SearchOptions()
    _b.search_options_init(byref(out))
    keep = []
    for name, value in options.items():
        if value is None:
            continue
        if name in _REAL_OPTIONS:
            setattr(out, name, value)
        elif name in _INTEGER_OPTIONS:
            setattr(out, name, _integer(name, value, 0, _INTEGER_OPTIONS[name]))
        elif name in _FLAG_OPTIONS:
            setattr(out, _FLAG_OPTIONS[name], bool(value))
        elif name == "cutoffs":
            out.cutoffs = _choose("cutoffs", value, _CUTOFFS)
        elif name == "first_target":
            out.first_target = _b.encode(value)
        elif name == "device":
            kind, colon, ordinals = str(value).partition(":")
            out.device = _choose("device", kind, {"auto": 0, "cpu": 1, "gpu": 2})
            if colon:
                numbers = ordinals.split(",")
                if kind.lower() != "gpu" or not all(n.isascii() and n.isdigit() for n in numbers):
                    raise UsageError(f"no device {value!r}: 'auto', 'cpu', 'gpu', or ordinals as in 'gpu:0,1'")
                gpus = [_integer("device", int(n), 0, _INT32) for n in numbers]
                keep.append((c_int32 * len(gpus))(*gpus))
                out.gpus, out.gpu_count = keep[-1], len(gpus)
        elif name == "cache":
            keep.append(value)
            out.cache = value._handle.pointer
        else:
            raise TypeError(f"search has no option {name!r}")
    out._keep = keep
    return out


def _convert(source, kind):
    return source if isinstance(source, kind) else kind(source)


class _Search:
    """One search on a thread of its own, so that the caller stays open to signals.

    `on_result` is called with the pointer of a result that lives until it returns.
    """

    def __init__(self, models, targets, options, on_result, on_progress, interval, on_warning):
        self.models, self.targets, self.options = models, targets, options
        self.cancellation = _b.Handle("cancellation", _b.cancellation_create)
        self.failure, self.results = None, None
        callbacks = _b.Callbacks(cancellation=self.cancellation.pointer,
                                 interval_ms=min(_INT32, max(1, int(interval * 1000))))
        if on_result is not None:
            callbacks.result = _b.ResultCallback(self._guarded(on_result))
        if on_progress is not None:
            callbacks.progress = _b.ProgressCallback(self._guarded(lambda p: self._progress(on_progress, p)))
        if on_warning is not None:
            warn = self._guarded(lambda pointer: on_warning(_b.exception(pointer)) and None)

            def warning(context, pointer):
                if warn(context, pointer) != 0:
                    self.cancel()

            callbacks.warning = _b.WarningCallback(warning)
        self.callbacks = callbacks
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True, name="hmmjit search")
        self.thread.start()

    def _guarded(self, work):
        def call(_, argument):
            try:
                return 1 if work(argument) is False else 0
            except BaseException as error:  # noqa: B902  it leaves through the caller
                self.failure = self.failure or error
                return 1

        return call

    @staticmethod
    def _progress(on_progress, pointer):
        progress = pointer.contents
        return on_progress({name: getattr(progress, name) for name, _ in progress._fields_[1:-1]})

    def _run(self):
        try:
            self.results = _b.Handle("results", _b.search, self.models._handle.pointer,
                                     self.targets._handle.pointer, byref(self.options), byref(self.callbacks))
        except BaseException as error:  # noqa: B902
            # The traceback would hold this frame, and with it the callbacks in a place where the garbage
            # collector does not look (byref): nothing of this search would ever be freed.
            self.failure = self.failure or error.with_traceback(None)
        finally:
            self.callbacks = None
            self.done.set()

    def cancel(self):
        _b.cancellation_cancel(self.cancellation.pointer)

    def wait(self):
        """Returns when the search has ended. Cancels it when interrupted (Ctrl-C)."""
        try:
            while not self.done.wait(0.2):
                pass
        except BaseException:
            self.cancel()
            self.done.wait()
            raise
        self.thread.join()
        if self.failure is not None:
            raise self.failure

    def statistics(self):
        out = _b.SearchStatistics()
        _b.results_statistics(self.results.pointer, byref(out))
        values = {n: getattr(out, n) for n, _ in out._fields_ if n not in ("size", "reserved", "counts")}
        for name in ("backend", "device", "json"):
            values[name] = _b.text(values[name])
        for name in ("streamed", "spooled"):
            values[name] = bool(values[name])
        values["counts"] = {n: getattr(out.counts, n) for n, _ in _b.FilterCounts._fields_}
        return values


def search(models, targets, *, progress=None, interval=0.25, warning=None, **options):
    """Searches every model against every target; returns Results.

    `models`, `targets`: Models and Targets, or what their constructors take.

    Options, with hmmsearch's meaning and defaults: E, T, domE, domT, incE, incT, incdomE, incdomT,
    Z, domZ, cutoffs ("gathering", "noise", "trusted"), max, F1, F2, F3, bias_filter, null2, seed,
    first_target and target_count (--restrictdb_stkey, --restrictdb_n); and: alignments (False saves
    memory), threads (0: all cores), memory (bytes; 0: half of what is free), device ("auto", "cpu",
    "gpu", "gpu:0,1"), vram (bytes of each GPU), verify (targets per model whose GPU result is checked;
    default: as many as take one hundredth of the core-seconds),
    cache (a Cache). Of searches that run at once, each takes its own threads and memory: share them out.

    `progress` is called every `interval` seconds, from another thread, with a dict of counters;
    returning False cancels the search (Cancelled is raised). So does Ctrl-C. `warning` is called, from
    another thread, with an Error for what went wrong without stopping the search: a GPU given up, a
    cache folder that cannot be used. What these functions raise ends the search and is raised here.

    `statistics` of the Results: a dict. Seconds of stages (read, setup, ssv, msv, bias, viterbi,
    scoring, report) are processor time summed over threads, others wall time; "json" is the text of
    `hmmjit search --stats`; "backend" and "device" say what filtered, and why no GPU did.
    """
    out = _make_options(options)
    run = _Search(_convert(models, Models), _convert(targets, Targets), out, None, progress, interval, warning)
    run.wait()
    results = [Result(_b.results_get(run.results.pointer, i)) for i in range(_b.results_count(run.results.pointer))]
    return Results(results, run.statistics(), out)


class SearchIterator:
    """Results of a running search: an iterator of Result, and a context manager.

    `statistics`: as of Results, once all results are out; None before. close() cancels the search.
    One thread at a time.
    """

    def __init__(self, models, targets, options, buffer, progress, interval, warning):
        self.statistics = None
        self._waiting = queue.Queue(maxsize=max(1, buffer))
        self._closed = threading.Event()
        # What the search's thread holds must not be this object: it would never be dropped.
        self._run = _Search(models, targets, options, self._putter(self._waiting, self._closed), progress, interval,
                            warning)

    @staticmethod
    def _putter(waiting, closed):
        def put(pointer):
            result = Result(pointer)
            while not closed.is_set():
                try:
                    waiting.put(result, timeout=0.1)
                    return True
                except queue.Full:
                    pass
            return False

        return put

    def __iter__(self):
        return self

    def __next__(self):
        try:
            while not self._closed.is_set():
                ended = self._run.done.is_set()  # before looking: nothing comes after it
                try:
                    return self._waiting.get(timeout=0 if ended else 0.05)
                except queue.Empty:
                    if ended:
                        break
            if not self._closed.is_set():
                self._run.wait()
                self.statistics = self._run.statistics()
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopIteration

    def close(self):
        """Cancels the search if it runs, and waits for its end."""
        if not self._closed.is_set():
            self._closed.set()
            self._run.cancel()
            self._run.done.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if hasattr(self, "_run"):  # without waiting: the interpreter may be ending
            self._closed.set()
            self._run.cancel()


def search_iter(models, targets, *, buffer=64, progress=None, interval=0.25, warning=None, **options):
    """As search, but returns a SearchIterator, which yields each Result as soon as it and those before
    it are ready: for libraries whose results do not fit in memory. At most `buffer` results wait."""
    return SearchIterator(_convert(models, Models), _convert(targets, Targets), _make_options(options), buffer,
                          progress, interval, warning)


def search_to_files(models, targets, files, *, progress=None, interval=0.25, warning=None, report=None, **options):
    """As search, but writes results to files as they come and keeps none; returns the statistics.

    `files`: a dict of kinds of Report and paths, such as {"tblout": "hits.tbl", "json": "hits.json"}; the
    main report has its header. The files appear when all are complete. `report`: a dict of arguments of
    Report. Options as of search.
    """
    out = _make_options(options)
    reports = [Report(kind, path, search=out, **(report or {})) for kind, path in files.items()]
    for made, kind in zip(reports, files):
        if kind == "main":
            made.add_header()

    def write(pointer):
        for made in reports:
            _b.report_add(made._handle.pointer, pointer)

    run = _Search(_convert(models, Models), _convert(targets, Targets), out, write, progress, interval, warning)
    run.wait()
    for made in reports:
        made.complete()
    return run.statistics()


def build_database(targets, path, alphabet="amino"):
    """Writes a target database, which searches read without parsing: Targets(path) takes it.

    `targets`: Targets, or what its constructor takes, or a list of paths. Returns database_info(path).
    """
    if isinstance(targets, (list, tuple)) and targets and all(_is_path(t) or isinstance(t, Targets) for t in targets):
        inputs = [_convert(t, Targets) for t in targets]
    else:
        inputs = [targets if isinstance(targets, Targets) or _is_path(targets) else Targets(targets, alphabet)]
        inputs = [_convert(t, Targets) for t in inputs]
    pointers = (c_void_p * len(inputs))(*(t._handle.pointer for t in inputs))
    _b.database_build(pointers, len(inputs), _choose("alphabet", alphabet, _ALPHABETS), _b.encode(path))
    return database_info(path)


def database_info(path):
    """What a target database says of itself, a dict; from its header, at once."""
    info = _b.DatabaseInfo()
    about = _b.Handle("text", lambda pointer: _b.database_get_info(_b.encode(path), byref(info), pointer))
    out = {n: getattr(info, n) for n, _ in info._fields_ if n not in ("size", "reserved")}
    out["alphabet"] = next(n for n, v in _ALPHABETS.items() if v == info.alphabet)
    lines = [line.partition(" ") for line in _b.text(_b.take_text(about)).splitlines()]
    out["program"] = next((value for key, _, value in lines if key == "program"), "")
    out["sources"] = [value for key, _, value in lines if key == "source"]
    return out


def verify_database(path):
    """Checks every byte of a target database; InputError at the first damage."""
    _b.database_verify(_b.encode(path))


def devices():
    """The GPUs of this machine, as dicts; empty where there is none."""
    count, out = c_int32(), []
    note = _b.Handle("text", lambda pointer: _b.device_count(byref(count), pointer))
    del note
    for i in range(count.value):
        device = _b.Device()
        _b.device_get(i, byref(device))
        out.append({n: getattr(device, n) for n, _ in device._fields_[1:]})
        out[-1]["name"] = _b.text(out[-1]["name"])
    return out


def plan(model_length, device="H200", stage="ssv", variant=None, exact_length=False):
    """Which kernel would score a model of that length on a device of the built-in table, and why: a dict.

    `exact_length`: specialised for the length itself, not for its class."""
    struct = _b.Device()
    _b.device_find(_b.encode(device), byref(struct))
    engine = _b.Handle("engine", _b.engine_create, None)
    made = _b.Handle("plan", _b.engine_plan_stage, engine.pointer, _b.encode(stage), model_length, byref(struct),
                     byref(_b.PlanOptions(variant=_b.encode(variant), exact_length=bool(exact_length))))
    return json.loads(_b.text(_b.plan_json(made.pointer)))
