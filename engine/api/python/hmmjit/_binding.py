"""The C interface (hmmjit.h) by ctypes, with errors as exceptions.

Structs and functions are attributes of this module, made from _interface.py; functions on first use: `ModelInfo` is
hmmjit_model_info, `models_get` calls hmmjit_models_get and raises its errors.
"""
from __future__ import annotations

import ctypes
import os
import re
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char, c_char_p, c_double, c_float, c_int32, c_int64,
                    c_size_t, c_uint8, c_uint32, c_uint64, c_void_p)
from typing import Any, Callable, Dict, Iterator, List, NoReturn, Optional, Tuple, Type, Union

from ._fields import text as text
from ._interface import FUNCTIONS, OPTIONS, STRUCTS as _MEMBERS


ABI = "0.1"


def _candidates() -> Iterator[str]:
    """Possible paths of the shared library, best first."""
    named = os.environ.get("HMMJIT_LIBRARY")
    if named:
        yield named
        return
    name = f"libhmmjit.so.{ABI}"
    # Installed with this package: <prefix>/lib/python3/dist-packages/hmmjit.
    here = os.path.dirname(os.path.abspath(__file__))
    library_folder = os.path.dirname(os.path.dirname(os.path.dirname(here)))
    yield os.path.join(here, name)
    yield os.path.join(library_folder, name)
    for folder in sorted(os.listdir(library_folder)) if os.path.isdir(library_folder) else []:
        if "-linux-" in folder:
            yield os.path.join(library_folder, folder, name)
    yield os.path.join(os.path.dirname(library_folder), "lib64", name)
    yield name  # found by the loader


def _load() -> Tuple[ctypes.CDLL, str]:
    tried = []
    for path in _candidates():
        if os.sep in path and not os.path.exists(path):
            tried.append(path)
            continue
        try:
            return ctypes.CDLL(path), path
        except OSError as error:
            tried.append(f"{path} ({error})")
    raise ImportError("libhmmjit was not found; install it, or name the file in HMMJIT_LIBRARY. Tried: "
                      + ", ".join(tried))


library, library_path = _load()


def _check_version() -> None:
    """The package binds one minor version: another would receive structs that it does not know."""
    try:
        number = library.hmmjit_version_number
    except AttributeError:
        raise ImportError(f"{library_path} is no libhmmjit {ABI}: it does not tell its version") from None
    number.restype, number.argtypes = c_int32, ()
    found = f"{number() // 10000}.{number() // 100 % 100}"
    if found != ABI:
        raise ImportError(f"{library_path} is libhmmjit {found}, this package is for {ABI}; install both of one "
                          "version, or name the right file in HMMJIT_LIBRARY")


_check_version()


class Sized(Structure):
    """A struct that begins with its size."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.size = ctypes.sizeof(self)


# Codes of _interface.py. Pointers to structs are addresses: the caller keeps the structs alive.
_TYPES: Dict[str, Any] = {"i": c_int32, "u": c_uint32, "l": c_int64, "L": c_uint64, "d": c_double, "f": c_float, "b": c_uint8,
                          "z": c_size_t, "s": c_char_p, "p": c_void_p, "v": None, "e": c_int32}
ResultCallback = VisitCallback = ProgressCallback = TargetCallback = CFUNCTYPE(c_int32, c_void_p, c_void_p)
WarningCallback = CFUNCTYPE(None, c_void_p, c_void_p)
_TYPES["c"] = ResultCallback

#: By C name, for tests of the layouts.
STRUCTS: Dict[str, Type[Structure]] = {}


def _make_structs() -> None:
    for name, members in _MEMBERS.items():
        fields = []
        for member, _, code in (part.partition(":") for part in members.split()):
            if code[0] == "n":
                kind: Any = c_char * int(code[1:])
            elif code.startswith("hmmjit_"):
                kind = STRUCTS[code]
            else:
                kind = WarningCallback if member == "warning" else _TYPES[code]
            fields.append((member, kind))
        base = Sized if fields[0][0] == "size" else Structure
        title = "".join(word.title() for word in name.split("_"))
        STRUCTS["hmmjit_" + name] = globals()[title] = type(title, (base,), {"_fields_": fields})


_make_structs()


def bytes_of(options: Any) -> bytes:
    """Options of a search as bytes, without pointers."""
    copy = type(options).from_buffer_copy(options)
    copy.gpus = copy.cache = copy.first_target = copy.cutoff_table = None
    copy.gpu_count = copy.cutoff_count = 0
    return bytes(copy)


class Error(Exception):
    """A failure of the library. `message`, `where` and `remedy` are its parts."""

    message: str
    where: str
    remedy: str

    def __init__(self, text: str, message: str = "", where: str = "", remedy: str = "") -> None:
        super().__init__(text)
        self.message, self.where, self.remedy = message or text, where, remedy

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        return type(self), (str(self), self.message, self.where, self.remedy)


class InternalError(Error):
    """A broken invariant: a bug in hmmjit."""


class UsageError(Error, ValueError):
    """An argument that makes no sense."""


class InputError(Error, ValueError):
    """A missing, malformed or unsuitable model or sequence."""


class NoDeviceError(Error):
    """A GPU was demanded and none can be used."""


class ResourcesError(Error, MemoryError):
    """Out of memory, threads or device memory."""


class CompileError(Error):
    """A kernel could not be rendered, compiled or loaded."""


class OutputError(Error, OSError):
    """A file could not be written."""


class Cancelled(Error):
    """The search was cancelled."""


ERRORS: Dict[int, Type[Error]] = {1: InternalError, 2: UsageError, 3: InputError, 4: NoDeviceError, 5: ResourcesError, 6: CompileError,
          7: OutputError, 130: Cancelled}


def encode(value: Union[None, str, bytes, os.PathLike[str], os.PathLike[bytes]]) -> Optional[bytes]:
    """Text or a path as bytes; None stays NULL. Refuses NUL characters, which would end a C string."""
    if value is None:
        return value
    if not isinstance(value, bytes):
        try:
            value = os.fspath(value)
        except TypeError:
            raise TypeError(f"neither text nor a path: {value!r}") from None
    if not isinstance(value, bytes):
        value = value.encode("utf-8", "surrogateescape")
    if b"\0" in value:
        raise UsageError(f"a NUL character in {value!r}")
    return value


def _declare(name: str, codes: str) -> Any:
    function = getattr(library, name)
    arguments = [_TYPES[code] for code in codes[1:]] + [POINTER(c_void_p)] * (codes[0] == "e")
    function.restype, function.argtypes = _TYPES[codes[0]], arguments
    return function


def __getattr__(name: str) -> Any:
    codes = FUNCTIONS.get(name)
    if codes is None:
        raise AttributeError(f"the C interface has no {name}")
    function = _declare("hmmjit_" + name, codes)
    made = _raising(function) if codes[0] == "e" else function
    globals()[name] = made
    return made


def _raising(function: Any) -> Callable[..., None]:
    """Wraps a C function: raises its error instead of returning a status."""

    def call(*values: Any) -> None:
        error = c_void_p()
        status = function(*values, byref(error))
        if status != 0:
            _raise(status, error)

    return call


for _name in ("text", "message", "where", "remedy", "free", "status"):
    _declare("hmmjit_error_" + _name, FUNCTIONS["error_" + _name])

VERSION = text(_declare("hmmjit_version", "s")())

#: Arguments of Builder whose member of hmmjit_build_options has another name.
BUILDER = {"popen": "gap_open", "pextend": "gap_extend", "single_by_matrix": "single_rows_by_matrix",
           "architecture": "columns", "symfrac": "least_occupied", "fragthresh": "fragment", "weighting": "weights",
           "wid": "weight_identity", "ere": "relative_entropy", "esigma": "total_entropy", "eid": "effective_identity",
           "effective_number": "effective", "max_insertions": "most_insertions", "EmL": "msv_length",
           "EmN": "msv_targets", "EvL": "viterbi_length", "EvN": "viterbi_targets", "EfL": "forward_length",
           "EfN": "forward_targets", "Eft": "tail_mass"}
# Members of C structs with another name in Python.
_NAMES = {member: name for name, member in [(n, m) for n, (m, _) in OPTIONS.items() if m != n] + [*BUILDER.items()]}
_NAMES.update(matrix_file="score_matrix", matrix="score_matrix", rounds="max_iterations")


def _in_python(text: str) -> str:
    """A remedy, or the name of an option, with this package's names."""
    text = text.replace("CacheMode::kReadWrite", "mode='rw'")
    text = re.sub(r"\b[a-z]+_[a-z_]+\b|(?<=\bset )\w+", lambda name: _NAMES.get(name[0], name[0]), text)
    return re.sub(r"(\w+) = (false|true|cpu|none)\b", lambda m: f"{m[1]}=" + {
        "false": "False", "true": "True", "cpu": "'cpu'", "none": "'none'"}[m[2]], text)


def exception(error: Any) -> Error:
    """The exception for an error object, which the caller still owns."""
    whole, message, where, remedy = (text(getattr(library, "hmmjit_error_" + n)(error))
                                     for n in ("text", "message", "where", "remedy"))
    names, status = where, library.hmmjit_error_status(error)
    if status == 2 and re.fullmatch(r"[A-Za-z_]+(, [A-Za-z_]+)*", where):
        names = ", ".join(_NAMES.get(name, name) for name in where.split(", "))
    whole = names + whole[len(where):] if names != where else whole
    advice = _in_python(remedy)
    if advice != remedy and whole.endswith(remedy):
        whole = whole[:len(whole) - len(remedy)] + advice
    return ERRORS.get(status, Error)(whole, message, names, advice)


def _raise(status: int, error: Any) -> NoReturn:
    if not error:  # no memory for the error
        raise ERRORS.get(status, Error)(f"status {status}")
    made = exception(error)
    library.hmmjit_error_free(error)
    try:
        raise made
    finally:
        del made  # its traceback holds this frame


class Handle:
    """Owns an opaque pointer of the library. A forked child frees nothing of its parent's: freeing may wait for
    threads, which only the parent has."""

    def __init__(self, kind: str, make: Callable[..., Any], *arguments: Any) -> None:
        self._free = _declare(f"hmmjit_{kind}_free", "vp")
        self._process = os.getpid()
        self.pointer: Any = c_void_p()
        self._as_parameter_ = self.pointer  # a call keeps a Handle argument alive, even if another thread drops it
        make(*arguments, byref(self.pointer))

    def __del__(self, process: Callable[[], int] = os.getpid) -> None:
        if getattr(self, "pointer", None) and self._process == process():
            self._free(self.pointer)
            self.pointer = None


def for_each(function: Any, callback: Any, use: Callable[[Any], bool], *arguments: Any) -> None:
    """Calls a C function that visits things until `use` returns False; raises the exception of `use`."""
    failure: List[BaseException] = []

    def visit(_: Any, pointer: Any) -> int:
        try:
            return 0 if use(pointer) else 1
        except BaseException as error:
            failure.append(error)
            return 1

    function(*arguments, callback(visit), None)
    if failure:
        raise failure[0]


_text_data, _text_size = _declare("hmmjit_text_data", "pp"), _declare("hmmjit_text_size", "zp")


def take_text(handle: Handle) -> bytes:
    """The contents of a hmmjit_text."""
    return ctypes.string_at(_text_data(handle.pointer), _text_size(handle.pointer))
