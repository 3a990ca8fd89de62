"""Models and targets of searches."""
from __future__ import annotations

import copy
import ctypes
import functools
import html
import io
import itertools
import math
import os
import threading
from ctypes import byref
from typing import (TYPE_CHECKING, Any, Callable, Dict, FrozenSet, Generic, Iterable, Iterator, List, Mapping, NamedTuple,
                    Optional, Tuple, Union, cast, overload)

from . import _binding as _b
from ._common import (ALPHABETS, INT64, Bytes, Handover, PathLike, T, UsageError, choose, contents, integer, is_path,
                      real)
from ._fields import Immutable
from ._interface import ModelFields

Cutoff = Optional[Tuple[float, float]]


def _alphabet_name(number: int) -> str:
    return next(n for n, v in ALPHABETS.items() if v == number)


def alphabet_of(things: Any, default: str) -> str:
    """The alphabet of models or sequences, also PyHMMER's; `default` if they have none."""
    if isinstance(things, (list, tuple)) and things:
        things = things[0]
    found = getattr(things, "alphabet", None) or default
    return str(getattr(found, "type", found)).lower()


def _text_property(name: str, doc: str) -> Any:
    def change(model: Model, value: Any) -> None:
        model._change(**{name: _b.encode(value or "")})

    return property(lambda model: _b.text(getattr(model._struct, name)), change, doc=doc)


def _cutoff_property(name: str, what: str) -> Any:
    def get(model: Model) -> Cutoff:
        scores = getattr(model._struct, name), getattr(model._struct, name + "_domain")
        return None if scores[0] != scores[0] else scores

    def change(model: Model, value: Any) -> None:
        try:
            targets, domains = (math.nan, math.nan) if value is None else (real(name, score) for score in value)
        except (TypeError, ValueError):
            raise UsageError(f"{name} takes two scores in bits (of targets, of domains), or None, not {value!r}") from None
        model._change(**{name: targets, name + "_domain": domains})

    return property(get, change, doc=f"{what}: bit scores (of targets, of domains), or None. Can be set.")


class Collection(Generic[T]):
    """Models or sequences, in memory or in a file."""

    _path: Optional[PathLike] = None
    _files: FrozenSet[str] = frozenset()  #: read by the constructor
    _things: str

    def _count(self) -> int:
        raise NotImplementedError

    def _one(self, number: int) -> T:
        raise NotImplementedError

    def _read(self) -> Iterator[T]:
        raise NotImplementedError

    def __len__(self) -> int:
        """The number in memory. TypeError for a path, which is not read yet: see count()."""
        if self._path is not None:
            raise TypeError(f"the {self._things} of {self._path!r} are not in memory: count() reads the file, "
                            f"{type(self).__name__}.load() keeps them")
        return self._count()

    def __bool__(self) -> bool:
        return self._path is not None or len(self) > 0

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> List[T]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[T, List[T]]:
        size = len(self)
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(size))]
        number = integer("an index", index, -INT64, INT64)
        if not -size <= number < size:
            raise IndexError(f"no {self._things[:-1]} {index} among {size}")
        return self._one(number % size)

    def _kept(self) -> Iterator[T]:
        return (self[i] for i in range(len(self)))

    def __iter__(self) -> Iterator[T]:
        return self._read() if self._path is not None else self._kept()


def files_of(source: Any) -> FrozenSet[str]:
    """The files that a source of models or targets was read from, or will be: no output may replace them."""
    if isinstance(source, Collection):
        return source._files if source._path is None else source._files | files_of(source._path)
    name: Any = source
    if hasattr(source, "read"):  # a member of an archive has a name, but no file
        try:
            name = source.name if os.path.samestat(os.fstat(source.fileno()), os.stat(source.name)) else None
        except (AttributeError, OSError, TypeError, ValueError):
            name = None
    return frozenset([os.path.abspath(os.fsdecode(name))] if is_path(name) or isinstance(name, bytes) else [])


def _read_ahead(visit: Callable[[Callable[[T], bool]], None], size: Callable[[T], int]) -> Iterator[T]:
    """Yields the things that `visit` passes on. A thread reads at most two batches ahead: a large file must not fill
    the memory. `size`: bytes of a thing."""
    from ._search import Run  # which imports this module
    batches: Handover[List[T]] = Handover(2)

    def read(_: Any) -> None:
        batch: List[T] = []
        room = 2**20

        def take(thing: T) -> bool:
            nonlocal batch, room
            batch.append(thing)
            room -= size(thing)
            if room > 0:
                return True
            full, batch, room = batch, [], 2**20
            return batches.put(full)

        visit(take)
        batches.put(batch)

    reader = Run(read, on_done=batches.end)
    try:
        for batch in iter(batches.get, None):
            yield from batch
        reader.wait()  # raises its failure
    finally:
        batches.closed.set()  # without waiting: the garbage collector may run this in the reader's own thread


class Model(ModelFields):
    """One profile.

    `name`, `accession`, `description`, `query` and the cutoffs `gathering`, `trusted` and `noise` can be set, for
    later searches. All other attributes are read-only. Copies are independent. A pickle keeps every parameter bit for
    bit, but not a file's history of the model.
    """

    if not TYPE_CHECKING:  # for mypy, only listed names can be set
        __slots__ = ("_handle", "__weakref__")
    _other_names = {"M": "length", "cutoffs": "gathering, trusted, noise", "emissions": "match_emissions",
                    "match": "match_emissions", "insert": "insert_emissions",
                    "transitions": "transition_probabilities"}

    name: str = _text_property("name", "One word. Can be set.")
    accession: str = _text_property("accession", "One word; empty where there is none. Can be set.")
    description: str = _text_property("description", "One line; empty where there is none. Can be set.")
    gathering: Cutoff = _cutoff_property("gathering", "Gathering cutoff (GA)")
    trusted: Cutoff = _cutoff_property("trusted", "Trusted cutoff (TC)")
    noise: Cutoff = _cutoff_property("noise", "Noise cutoff (NC)")

    def __init__(self, owner: Any, index: int = 0) -> None:
        handle = _b.Handle("models", _b.models_create)
        _b.models_add(handle.pointer, owner, index)
        self._take(handle)

    def _take(self, handle: _b.Handle) -> None:
        struct = _b.ModelInfo()
        _b.models_get(handle.pointer, 0, byref(struct))
        struct._keep = handle  # another thread may change the model while this one reads the struct
        self._handle, self._struct = handle, struct

    def _change(self, **members: Any) -> None:
        """Changes to another handle: searches and Models keep the old one."""
        struct = self._struct
        info = _b.ModelInfo.from_buffer_copy(struct)
        for name, value in members.items():
            setattr(info, name, value)
        handle = _b.Handle("models", _b.models_create)
        _b.models_add_changed(handle, struct._keep, 0, byref(info))
        self._take(handle)

    @property
    def alphabet(self) -> str:
        """"amino", "dna" or "rna"."""
        return _alphabet_name(self._struct.alphabet)

    @property
    def query(self) -> Optional[Tuple[str, str, str]]:
        """(name, accession, description) of the sequence from which the model was built, which reports name in place
        of the model; else None. Can be set."""
        info = self._struct
        names = tuple(_b.text(v) for v in (info.query_name, info.query_accession, info.query_description))
        return cast(Tuple[str, str, str], names) if names[0] else None

    @query.setter
    def query(self, value: Optional[Tuple[str, str, str]]) -> None:
        texts = value or ("", "", "")
        if isinstance(texts, (str, bytes)) or len(texts) != 3:
            raise UsageError(f"query takes a name, an accession and a description, not {value!r}")
        name, accession, description = (_b.encode(text) for text in texts)
        self._change(query_name=name, query_accession=accession, query_description=description)

    def _rows(self, member: str, columns: int, rows: int) -> Any:
        struct = self._struct
        address = getattr(struct, member)
        if not address:
            return None
        values = list((ctypes.c_float * (rows * columns)).from_address(address))
        table = tuple(tuple(values[i:i + columns]) for i in range(0, len(values), columns))
        try:
            import numpy
        except ImportError:
            return table
        return numpy.array(table, dtype="float32")

    @property
    def match_emissions(self) -> Any:
        """Probabilities [length + 1][letters] of match states, row 0 unused; letters in alphabetical order. A copy: a
        NumPy array if NumPy is installed, else tuples."""
        return self._rows("match", self._struct.letters, self.length + 1)

    @property
    def insert_emissions(self) -> Any:
        """Probabilities of insert states, like match_emissions."""
        return self._rows("insert", self._struct.letters, self.length + 1)

    @property
    def transition_probabilities(self) -> Any:
        """Probabilities [length + 1][7]: MM, MI, MD, IM, II, DM, DD; row 0 of the begin state."""
        return self._rows("transition", 7, self.length + 1)

    @property
    def composition(self) -> Any:
        """Mean emission [letters] of the model, or None."""
        rows = self._rows("composition", self._struct.letters, 1)
        return None if rows is None else rows[0]

    @property
    def evalue_parameters(self) -> Optional[Dict[str, Tuple[float, float]]]:
        """Score distributions in bits: (mu, lambda) of "msv" and "viterbi", (tau, lambda) of "forward"; None if the
        model is not calibrated."""
        s = self._struct
        if s.msv_mu != s.msv_mu:
            return None
        return {"msv": (s.msv_mu, s.msv_lambda), "viterbi": (s.viterbi_mu, s.viterbi_lambda),
                "forward": (s.forward_tau, s.forward_lambda)}

    def text(self) -> str:
        """The model as a profile file in format HMMER3/f, to five digits. Fails if no program could read it."""
        return self._written(0).decode("utf-8", "surrogateescape")

    def binary(self) -> bytes:
        """The model as a binary profile file (.h3m): every parameter bit for bit."""
        return self._written(1)

    def _written(self, binary: int) -> bytes:
        return _b.take_text(_b.Handle("text", _b.models_write, self._handle, 0, binary))

    def write(self, path: PathLike) -> None:
        """Writes text() to a file."""
        from ._reports import write_file  # which imports this module
        write_file(path, [self._written(0)])

    def __copy__(self) -> Model:
        return Model(self._handle)

    def __deepcopy__(self, memo: Any) -> Model:
        return Model(self._handle)

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        return _model_of, (self.binary(), self.query)

    def __repr__(self) -> str:
        return f"<hmmjit.Model {self.name!r}, {self.length} positions>"


def _model_of(data: bytes, query: Optional[Tuple[str, str, str]]) -> Model:
    one = _b.Handle("models", _b.models_from_memory, data, len(data), None)
    model = Model(one.pointer)
    if query is not None:
        model.query = query
    return model


ModelsSource = Union["Models", Model, PathLike, Bytes, io.IOBase, Iterable[Any]]


class Models(Collection[Model]):
    """Profiles to search with.

    `source`: a path, read during each search in bounded memory; bytes with the contents of such a
    file, or it opened; a Model or Models; PyHMMER's HMM; or an iterable of any of these (an HMMFile, a
    list of paths, say), whose files are read now. Formats: HMMER3 text and binary, HMMER2 text, plain,
    gzip or zstd.

    Iteration yields Models, read from the file of a path. `len` and indices need models in memory; count() counts
    those of a path. `models[i].gathering = ...` changes a model in memory for later searches; each search reads a
    file anew, so load() it first. Several threads may use one. A pickle of a path holds the path, a pickle of models
    in memory all of them.
    """

    _things = "models"

    def __init__(self, source: ModelsSource) -> None:
        self._begin()
        given = contents(source)
        if isinstance(given, (bytes, bytearray, memoryview)):
            data = bytes(given)
            self._files = files_of(source)
            self._models = _b.Handle("models", _b.models_from_memory, data, len(data), None)
        elif is_path(given):
            self._path = given
            self._models = _b.Handle("models", _b.models_from_file, _b.encode(given))
        else:
            self._models = _b.Handle("models", _b.models_create)
            self._add(given)

    @classmethod
    def load(cls, path: PathLike) -> Models:
        """Reads a file now and keeps its models."""
        self = cls._of(_b.Handle("models", _b.models_load, _b.encode(path)))
        self._files = files_of(path)
        return self

    @classmethod
    def _of(cls, handle: _b.Handle) -> Models:
        self = cls.__new__(cls)
        self._begin()
        self._models = handle
        return self

    def _begin(self) -> None:
        self._given: Dict[int, Tuple[Model, _b.Handle]] = {}
        self._lock = threading.Lock()

    @property
    def _handle(self) -> _b.Handle:
        """The models as they are now: the caller may have changed some."""
        with self._lock:
            if any(model._handle is not seen for model, seen in self._given.values()):
                now, given = _b.Handle("models", _b.models_create), {}
                for i in range(len(self)):
                    if i in self._given:
                        model = self._given[i][0]
                        given[i] = model, model._handle
                        _b.models_add(now, given[i][1], 0)
                    else:
                        _b.models_add(now, self._models, i)
                self._models, self._given = now, given
            return self._models

    def _add(self, source: Any) -> None:
        one = isinstance(source, (Model, Models)) or is_model(source) or _is_configured(source)
        if not one and not hasattr(source, "__iter__"):
            raise TypeError(f"no models: {type(source).__name__}; give a path, bytes, Model, Models, PyHMMER's HMM, "
                            "or an iterable of these")
        for item in [source] if one else source:
            if isinstance(item, Models) or is_path(item):
                self._files |= files_of(item)
            if isinstance(item, (Model, Models)):
                other: Any = item
            elif is_path(item):
                other = Models.load(item)
            elif _is_configured(item):
                raise TypeError(f"a {type(item).__name__} is a profile configured for its own search, which does not "
                                "hold its model any more: give the HMM it was made of")
            elif is_model(item):  # pyhmmer.plan7.HMM
                data = io.BytesIO()
                item.write(data, binary=True)  # exact; as text, probabilities would be rounded
                other = Models(data.getvalue())
            else:
                other = contents(item)
                if not isinstance(other, (bytes, bytearray, memoryview)):
                    raise TypeError(f"no model: {type(item).__name__}")
                other = Models(other)
            handle = other._handle
            if isinstance(other, Model):  # later changes of it apply here
                self._given[len(self)] = other, handle
            if _b.models_count(handle) > 0:
                for i in range(_b.models_count(handle)):
                    _b.models_add(self._models, handle, i)
            else:
                for model in other:
                    _b.models_add(self._models, model._handle, 0)

    def _count(self) -> int:
        return int(_b.models_count(self._models))

    def count(self) -> int:
        """The number of models; reads the file of a path."""
        return len(self) if self._path is None else sum(1 for _ in self)

    def _one(self, number: int) -> Model:
        with self._lock:
            if number not in self._given:
                model = Model(self._models, number)
                self._given[number] = model, model._handle
            return self._given[number][0]

    def _read(self) -> Iterator[Model]:
        return _read_ahead(lambda use: _b.for_each(_b.models_for_each, _b.VisitCallback, lambda one: use(Model(one)),
                                                   self._handle), lambda model: 200 * model.length)

    def write(self, path: PathLike) -> None:
        """Writes the models to a profile file, as text."""
        from ._reports import write_file  # which imports this module
        write_file(path, (model._written(0) for model in self))

    def __copy__(self) -> Models:
        return self.__deepcopy__(None)

    def __deepcopy__(self, memo: Any) -> Models:
        copied = Models(self._path if self._path is not None else [copy.copy(model) for model in self])
        copied._files = self._files
        return copied

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        return Models, (self._path if self._path is not None else list(self),)

    def __repr__(self) -> str:
        return f"<hmmjit.Models of {self._path!r}>" if self._path is not None else f"<hmmjit.Models, {len(self)}>"

    def _repr_html_(self) -> str:
        if self._path is not None:
            return html.escape(repr(self))
        head = "<tr><th>name</th><th>accession</th><th>positions</th><th>description</th></tr>"
        rows = [f"<tr><td>{html.escape(m.name)}</td><td>{html.escape(m.accession)}</td><td>{m.length}</td>"
                f"<td>{html.escape(m.description)}</td></tr>" for m in self[:20]]
        more = f"<p>{len(self) - 20} more</p>" if len(self) > 20 else ""
        return f"<table>{head}{''.join(rows)}</table>{more}"


def is_model(item: Any) -> bool:
    """PyHMMER's HMM."""
    return hasattr(item, "write") and hasattr(item, "consensus")


def is_models(source: Any) -> bool:
    """Models, and no sequences."""
    if isinstance(source, (list, tuple)) and source:
        return is_models(source[0])
    return isinstance(source, (Model, Models)) or is_model(source) or type(source).__name__ in (
        "HMMFile", "HMMPressedFile") or _is_configured(source)


def _is_configured(item: Any) -> bool:
    """PyHMMER's Profile and OptimizedProfile."""
    return type(item).__name__ in ("Profile", "OptimizedProfile") and hasattr(item, "msv_filter")


class Sequence(NamedTuple):
    """One target or query. Targets yields and accepts it."""

    name: str
    residues: str
    accession: str = ""
    description: str = ""


def _bytes_of(sequence: Sequence) -> int:
    return len(sequence.residues) + 100


def is_sequence(item: Any) -> bool:
    """True for one sequence: a Sequence, or one of PyHMMER or Biopython. False for blocks."""
    return isinstance(item, Sequence) or (hasattr(item, "sequence") and hasattr(item, "name")) or (
        hasattr(item, "seq") and hasattr(item, "id"))


def _texts_of(sequence: Any) -> Tuple[Any, Any, Any, Any]:
    """Name, residues, accession and description of one target of any type."""
    if isinstance(sequence, (tuple, list)) and 2 <= len(sequence) <= 4:
        return cast(Tuple[Any, Any, Any, Any], (*sequence, None, None)[:4])
    if hasattr(sequence, "textize"):  # pyhmmer.easel.DigitalSequence
        sequence = sequence.textize()
    if hasattr(sequence, "sequence") and hasattr(sequence, "name"):  # pyhmmer.easel.TextSequence
        return (sequence.name, sequence.sequence, getattr(sequence, "accession", None),
                getattr(sequence, "description", None))
    if hasattr(sequence, "seq") and hasattr(sequence, "id"):  # Bio.SeqRecord
        description = getattr(sequence, "description", None) or ""
        if description.split(None, 1)[:1] == [sequence.id]:  # from FASTA, it is the whole line
            description = description[len(sequence.id):].strip()
        return sequence.id, str(sequence.seq), None, description
    raise TypeError(f"no sequence: {type(sequence).__name__}; give (name, residues) pairs, PyHMMER's or "
                    "Biopython's objects")


TargetsSource = Union["Targets", PathLike, Bytes, io.IOBase, Mapping[str, str], Iterable[Any]]


class Targets(Immutable, Collection[Sequence]):
    """Sequences to search.

    `source`: a path, read during each search; bytes with the contents of such a file, or it opened; a
    mapping of names to residues; one sequence; or an iterable of Sequences, (name, residues[, accession[, description]]), of
    PyHMMER's sequences (a SequenceFile or a block, say), of Biopython's records, or of paths and Targets, which
    are read now. Target databases (.hjdb) are taken like sequence files. `alphabet`: "amino", "dna" or "rna"; None: that of
    PyHMMER's sequences, else "amino"; searches read a path in the models' alphabet. `format`: None, or a name of hmmsearch's --tformat.

    Iteration yields Sequences, read from the file of a path. `len` and indices need targets in memory; count() counts
    those of a path. UsageError for blanks or control characters in names and accessions, and for descriptions of
    several lines. Immutable: several threads may use one. A pickle of a path holds the path, a pickle of targets in
    memory all of them.
    """

    _things = "targets"
    _format: Optional[str] = None
    _has_alphabet = True

    def __init__(self, source: TargetsSource, alphabet: Optional[str] = None, format: Optional[str] = None) -> None:
        self._format = format
        encoded = _b.encode(format)
        given, told = contents(source), alphabet
        if told is None:
            given, told = _with_alphabet(given, "amino")
        self._alphabet = choose("alphabet", told, ALPHABETS)
        if isinstance(given, (bytes, bytearray, memoryview)):
            data = bytes(given)
            self._files = files_of(source)
            self._handle = _b.Handle("targets", _b.targets_from_memory, data, len(data), self._alphabet, encoded,
                                     None)
        elif is_path(given):
            self._path = given
            self._has_alphabet = alphabet is not None
            self._handle = _b.Handle("targets", _b.targets_from_file, _b.encode(given), encoded)
        else:
            self._handle = _b.Handle("targets", _b.targets_create, self._alphabet)
            items = [given] if isinstance(given, Targets) or is_sequence(given) else given
            if not hasattr(items, "__iter__") and not hasattr(items, "__getitem__"):
                raise TypeError(f"no sequences: {type(given).__name__}; give a path, bytes, Targets, or an iterable of "
                                "Sequences, (name, residues) pairs, PyHMMER's or Biopython's objects")
            for sequence in items.items() if hasattr(items, "items") else items:
                if isinstance(sequence, Targets) or is_path(sequence):
                    self._files |= files_of(sequence)
                if is_path(sequence):
                    sequence = Targets(sequence, alphabet, format)
                if isinstance(sequence, Targets):
                    _b.targets_append(self._handle.pointer, sequence._handle.pointer)
                    continue
                name, residues, accession, description = (_b.encode(v) for v in _texts_of(sequence))
                if residues is None:
                    raise UsageError(f"target {_b.text(name)!r} has no residues")
                _b.targets_add(self._handle.pointer, name, accession, description, residues, len(residues))

    @classmethod
    def load(cls, path: PathLike, alphabet: str = "amino", format: Optional[str] = None) -> Targets:
        """Reads a file now and keeps its sequences, one byte per residue."""
        self = cls.__new__(cls)
        self._alphabet = choose("alphabet", alphabet, ALPHABETS)
        self._handle = _b.Handle("targets", _b.targets_load, _b.encode(path), self._alphabet, _b.encode(format))
        self._files = files_of(path)
        return self

    def _count(self) -> int:
        return int(_b.targets_count(self._handle.pointer))

    @property
    def alphabet(self) -> Optional[str]:
        """"amino", "dna" or "rna"; None for a path without one."""
        return _alphabet_name(self._alphabet) if self._has_alphabet else None

    def count(self) -> int:
        """The number of sequences: from the header of a database; reads any other file."""
        if self._path is None:
            return len(self)
        try:
            info = _b.DatabaseInfo()
            _b.database_get_info(_b.encode(self._path), byref(info), None)
            return int(info.targets)
        except _b.Error:
            return sum(1 for _ in self)

    @property
    def residues(self) -> int:
        """Residues in memory. TypeError for a path."""
        len(self)
        return int(_b.targets_residues(self._handle.pointer))

    def _visit(self, first: int, use: Callable[[Sequence], bool]) -> None:
        def visit(pointer: Any) -> bool:
            target = _b.Target.from_address(pointer)
            return use(Sequence(_b.text(target.name), target.residues.decode("ascii"), _b.text(target.accession),
                                _b.text(target.description)))

        _b.for_each(_b.targets_for_each, _b.TargetCallback, visit, self._handle.pointer, self._alphabet, first)

    def _read(self) -> Iterator[Sequence]:
        return _read_ahead(functools.partial(self._visit, 0), _bytes_of)

    def _some(self, first: int, room: int) -> List[Sequence]:
        """Targets in memory from `first` on, up to the one that reaches `room` bytes."""
        from ._search import calling  # which imports this module
        batch: List[Sequence] = []

        def take(sequence: Sequence) -> bool:
            nonlocal room
            batch.append(sequence)
            room -= _bytes_of(sequence)
            return room > 0

        with calling():
            self._visit(first, take)
        return batch

    def _one(self, number: int) -> Sequence:
        return self._some(number, 0)[0]

    def _kept(self) -> Iterator[Sequence]:
        number = 0
        while number < len(self):
            batch = self._some(number, 2**20)
            yield from batch
            number += len(batch)

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        source = self._path if self._path is not None else list(self)
        return Targets, (source, self.alphabet, self._format if self._path is not None else None)

    def __repr__(self) -> str:
        if self._path is not None:
            return f"<hmmjit.Targets of {self._path!r}>"
        return f"<hmmjit.Targets, {len(self)} with {self.residues} residues>"


def _with_alphabet(given: Any, usual: str) -> Tuple[Any, str]:
    """Sequences, and their own alphabet, which the first tells, or the `usual` one."""
    told = given
    if isinstance(given, Iterator):
        told = list(itertools.islice(given, 1))
        given = itertools.chain(told, given)
    own = alphabet_of(told, usual)
    return given, own if own in ALPHABETS else usual


def sequences_of(source: Any, alphabet: Optional[str], usual: str) -> Targets:
    """Targets in their own alphabet, else in `alphabet` or, without it, in the `usual` one."""
    given, own = _with_alphabet(contents(source), alphabet or usual)
    if isinstance(given, Targets):
        return given
    targets = Targets(given, own)
    if targets._path is None:
        targets._files |= files_of(source)
    return targets
