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
           "InternalError", "Model", "Models", "NoDeviceError", "OutputError", "ResourcesError", "Result",
           "Results", "Table", "Targets", "UsageError", "devices", "plan", "search", "search_iter"]

__version__ = _b.text(_b.library.hmmjit_version())

_ALPHABETS = {"amino": 0, "dna": 1, "rna": 2}
_CUTOFFS = {None: 0, "gathering": 1, "noise": 2, "trusted": 3, "ga": 1, "nc": 2, "tc": 3}
_REPORTS = {"main": 0, "tblout": 1, "domtblout": 2, "pfamtblout": 3, "stockholm": 4, "tsv": 5, "json": 6,
            "a3m": 7, "scan_tblout": 8, "scan_domtblout": 9}


def _choose(what, name, choices):
    key = name.lower() if isinstance(name, str) else name
    if key not in choices:
        raise UsageError(f"no {what} {name!r}: " + ", ".join(repr(c) for c in choices))
    return choices[key]


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

    def __init__(self, info):
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
    file, or it opened; PyHMMER's HMM, or an iterable of HMMs (an HMMFile, say), bytes or Models. Formats: HMMER3
    text and binary, HMMER2 text, plain, gzip or zstd.
    """

    def __init__(self, source):
        source = _contents(source)
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
            self._handle = _b.Handle("models", _b.models_from_memory, data, len(data), None)
        elif _is_path(source):
            self._handle = _b.Handle("models", _b.models_from_file, _b.encode(os.fspath(source)))
        else:
            self._handle = _b.Handle("models", _b.models_create)
            self._add(source)

    @classmethod
    def load(cls, path):
        """Reads a file now and keeps its models."""
        self = cls.__new__(cls)
        self._handle = _b.Handle("models", _b.models_load, _b.encode(os.fspath(path)))
        return self

    def _add(self, source):
        for item in [source] if hasattr(source, "write") else source:
            if isinstance(item, Models):
                other = item
            elif isinstance(item, (bytes, bytearray, memoryview)):
                other = Models(item)
            elif hasattr(item, "write"):  # pyhmmer.plan7.HMM
                text = io.BytesIO()
                item.write(text)
                other = Models(text.getvalue())
            else:
                raise TypeError(f"no model: {type(item).__name__}")
            if len(other) == 0:
                raise UsageError("models of a file that is read during searches cannot be joined; use Models.load")
            for i in range(len(other)):
                _b.models_add(self._handle.pointer, other._handle.pointer, i)

    def __len__(self):
        """Models in memory; 0 for those of a path."""
        return _b.models_count(self._handle.pointer)

    def __getitem__(self, index):
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        info = _b.ModelInfo()
        _b.models_get(self._handle.pointer, index, byref(info))
        return Model(info)


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
    sequences (a SequenceFile or a block, say) or Biopython's records. `alphabet`: "amino", "dna",
    "rna", for what is not a path. `format`: None, or a name of hmmsearch's --tformat.
    """

    def __init__(self, source, alphabet="amino", format=None):
        alphabet, format = _choose("alphabet", alphabet, _ALPHABETS), _b.encode(format)
        source = _contents(source)
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
            self._handle = _b.Handle("targets", _b.targets_from_memory, data, len(data), alphabet, format, None)
        elif _is_path(source):
            self._handle = _b.Handle("targets", _b.targets_from_file, _b.encode(os.fspath(source)), format)
        else:
            self._handle = _b.Handle("targets", _b.targets_create, alphabet)
            for sequence in source.items() if hasattr(source, "items") else source:
                name, residues, accession, description = (_b.encode(v) for v in _residues(sequence))
                _b.targets_add(self._handle.pointer, name, accession, description, residues, len(residues))

    @classmethod
    def load(cls, path, alphabet="amino", format=None):
        """Reads a file now and keeps its sequences, a byte per residue."""
        self = cls.__new__(cls)
        self._handle = _b.Handle("targets", _b.targets_load, _b.encode(os.fspath(path)),
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
    the model in the input), name, accession, description, length (of the model), Z, domZ, seconds, and
    `counts`, the targets that passed each filter.
    """

    def __init__(self, pointer):
        self._handle = _b.Handle("result", _b.result_copy, pointer)
        info = _b.ResultInfo()
        _b.result_get_info(self._handle.pointer, byref(info))
        self.index, self.length = info.model_index, info.model_length
        self.name, self.accession, self.description = (
            _b.text(v) for v in (info.model_name, info.model_accession, info.model_description))
        self.Z, self.domZ, self.seconds = info.Z, info.domZ, info.seconds
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

    def report(self, kind="tblout", path=None, *, prefer_accession=False, alignments=True, text_width=120,
               query_file="", target_file="", settings="", date=""):
        """hmmsearch's output of a kind: "main", "tblout", "domtblout", "pfamtblout", "stockholm", "tsv",
        "json", "a3m", "scan_tblout", "scan_domtblout". Returned as bytes, or written to `path`, which
        appears when it is complete. The last four arguments are printed in comment lines."""
        options = _b.ReportOptions(prefer_accession=prefer_accession, alignments=alignments,
                                   text_width=text_width, search=ctypes.pointer(self._options))
        report = _b.Handle("report", _b.report_create, _choose("report", kind, _REPORTS),
                           None if path is None else _b.encode(os.fspath(path)), byref(options))
        for result in self:
            _b.report_add(report.pointer, result._handle.pointer)
        run = _b.RunInfo(query_file=_b.encode(query_file), target_file=_b.encode(target_file),
                         settings=_b.encode(settings), date=_b.encode(date))
        _b.report_complete(report.pointer, byref(run))
        if path is None:
            return _b.take_text(_b.Handle("text", _b.report_take_text, report.pointer))
        return None


class Cache:
    """The kernel cache of GPU searches. Unset arguments: the environment's (HMMJIT_CACHE_*).

    `mode`: "off", "ro", "rw", "refresh" or "strict".
    """

    _MODES = {None: -1, "off": 0, "ro": 1, "rw": 2, "refresh": 3, "strict": 4}

    def __init__(self, directory=None, mode=None, max_bytes=0):
        settings = _b.CacheSettings(directory=None if directory is None else _b.encode(os.fspath(directory)),
                                    mode=_choose("cache mode", mode, self._MODES), max_bytes=max_bytes)
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
        return self._counted(_b.cache_export, _b.encode(os.fspath(path)))

    def import_(self, path):
        """Adds the kernels of such a file; returns how many were new. Import what you trust only."""
        return self._counted(_b.cache_import, _b.encode(os.fspath(path)))


def _make_options(options):
    out = _b.SearchOptions()
    _b.search_options_init(byref(out))
    keep = []
    simple = ("E", "T", "domE", "domT", "incE", "incT", "incdomE", "incdomT", "Z", "domZ", "F1", "F2", "F3",
              "bias_filter", "null2", "seed", "threads", "memory", "vram", "verify")
    for name, value in options.items():
        if value is None:
            continue
        if name in simple:
            setattr(out, name, value)
        elif name == "cutoffs":
            out.cutoffs = _choose("cutoffs", value, _CUTOFFS)
        elif name == "max":
            out.max_sensitivity = bool(value)
        elif name == "alignments":
            out.keep_alignments = bool(value)
        elif name == "device":
            kind, _, ordinals = str(value).partition(":")
            out.device = _choose("device", kind, {"auto": 0, "cpu": 1, "gpu": 2})
            if ordinals:
                gpus = [int(n) for n in ordinals.split(",")]
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
    """One search on a thread of its own, so that the caller stays open to signals."""

    def __init__(self, models, targets, options, on_result, on_progress, interval):
        self.models, self.targets, self.options = models, targets, options
        self.cancellation = _b.Handle("cancellation", _b.cancellation_create)
        self.failure, self.results = None, None
        callbacks = _b.Callbacks(cancellation=self.cancellation.pointer, interval_ms=max(1, int(interval * 1000)))
        if on_result is not None:
            callbacks.result = _b.ResultCallback(self._guarded(lambda pointer: on_result(Result(pointer))))
        if on_progress is not None:
            callbacks.progress = _b.ProgressCallback(self._guarded(lambda p: self._progress(on_progress, p)))
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
            self.failure = self.failure or error
        finally:
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
        values["backend"], values["device"] = _b.text(values["backend"]), _b.text(values["device"])
        values["counts"] = {n: getattr(out.counts, n) for n, _ in _b.FilterCounts._fields_}
        return values


def search(models, targets, *, progress=None, interval=0.25, **options):
    """Searches every model against every target; returns Results.

    `models`, `targets`: Models and Targets, or what their constructors take.

    Options, with hmmsearch's meaning and defaults: E, T, domE, domT, incE, incT, incdomE, incdomT,
    Z, domZ, cutoffs ("gathering", "noise", "trusted"), max, F1, F2, F3, bias_filter, null2, seed;
    and: alignments (False saves memory), threads (0: all cores), memory (bytes), device ("auto",
    "cpu", "gpu", "gpu:0,1"), vram, verify, cache (a Cache).

    `progress` is called every `interval` seconds, from another thread, with a dict of counters;
    returning False cancels the search (Cancelled is raised). So does Ctrl-C.
    """
    out = _make_options(options)
    run = _Search(_convert(models, Models), _convert(targets, Targets), out, None, progress, interval)
    run.wait()
    results = [Result(_b.results_get(run.results.pointer, i)) for i in range(_b.results_count(run.results.pointer))]
    return Results(results, run.statistics(), out)


def search_iter(models, targets, *, buffer=64, **options):
    """As search, but yields each Result as soon as it and those before it are ready: for libraries
    whose results do not fit in memory. At most `buffer` results wait. Closing the iterator cancels."""
    waiting = queue.Queue(maxsize=max(1, buffer))
    closed = threading.Event()

    def put(result):
        while not closed.is_set():
            try:
                waiting.put(result, timeout=0.1)
                return True
            except queue.Full:
                pass
        return False

    run = _Search(_convert(models, Models), _convert(targets, Targets), _make_options(options), put, None, 0.25)
    try:
        while not (run.done.is_set() and waiting.empty()):
            try:
                yield waiting.get(timeout=0.05)
            except queue.Empty:
                pass
        run.wait()
    finally:
        closed.set()
        run.cancel()
        run.done.wait()


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


def plan(model_length, device="H200", stage="ssv", variant=None):
    """Which kernel would score a model of that length on a device of the built-in table, and why: a dict."""
    struct = _b.Device()
    _b.device_find(_b.encode(device), byref(struct))
    engine = _b.Handle("engine", _b.engine_create, None)
    made = _b.Handle("plan", _b.engine_plan_stage, engine.pointer, _b.encode(stage), model_length, byref(struct),
                     _b.encode(variant))
    return json.loads(_b.text(_b.plan_json(made.pointer)))
