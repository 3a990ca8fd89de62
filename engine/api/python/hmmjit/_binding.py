"""The C interface (hmmjit.h) as ctypes sees it, and its errors as exceptions.

Private: the package's own modules use it, nobody else should.
"""
from __future__ import annotations

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int32, c_int64, c_size_t,
                    c_uint32, c_uint64, c_void_p)
from typing import Any, Callable, ClassVar, Dict, Iterator, NoReturn, Optional, Tuple, Type, Union

ABI = "0.1"


def _candidates() -> Iterator[str]:
    """Where the shared library may be, best first."""
    named = os.environ.get("HMMJIT_LIBRARY")
    if named:
        yield named
        return
    name = f"libhmmjit.so.{ABI}"
    # Installed beside this package: <prefix>/lib/python3/dist-packages/hmmjit.
    here = os.path.dirname(os.path.abspath(__file__))
    library_folder = os.path.dirname(os.path.dirname(os.path.dirname(here)))
    yield os.path.join(here, name)
    yield os.path.join(library_folder, name)
    for folder in sorted(os.listdir(library_folder)) if os.path.isdir(library_folder) else []:
        if "-linux-" in folder:
            yield os.path.join(library_folder, folder, name)
    yield os.path.join(os.path.dirname(library_folder), "lib64", name)
    yield name  # as the loader finds it


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
    """The package binds one minor version; another would be called with structs it does not know."""
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


class ModelInfo(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("name", c_char_p), ("accession", c_char_p), ("description", c_char_p),
                ("consensus", c_char_p), ("length", c_int32), ("alphabet", c_int32),
                ("gathering", c_double), ("gathering_domain", c_double), ("trusted", c_double),
                ("trusted_domain", c_double), ("noise", c_double), ("noise_domain", c_double),
                ("query_name", c_char_p), ("query_accession", c_char_p), ("query_description", c_char_p)]


class CacheSettings(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("directory", c_char_p), ("system_directory", c_char_p), ("mode", c_int32),
                ("allow_group", c_int32), ("max_bytes", c_uint64), ("max_memory_bytes", c_uint64)]


class CacheStatistics(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t)] + [(n, c_uint64) for n in (
        "memory_hits", "user_hits", "system_hits", "misses", "published", "publish_failures", "bad_entries",
        "refused_entries", "entries", "disk_bytes")]


class SearchOptions(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t)] + [(n, c_double) for n in (
        "E", "domE", "incE", "incdomE", "T", "domT", "incT", "incdomT")] + [
            ("cutoffs", c_int32), ("max_sensitivity", c_int32), ("Z", c_double), ("domZ", c_double),
            ("F1", c_double), ("F2", c_double), ("F3", c_double), ("bias_filter", c_int32), ("null2", c_int32),
            ("seed", c_uint32), ("keep_alignments", c_int32), ("threads", c_int32), ("device", c_int32),
            ("memory", c_uint64), ("vram", c_uint64), ("gpus", POINTER(c_int32)), ("gpu_count", c_size_t),
            ("verify", c_int32), ("reserved", c_int32), ("cache", c_void_p), ("first_target", c_char_p),
            ("target_count", c_int64)]


def bytes_of(options: Any) -> bytes:
    """Options of a search as bytes, without what is of this process."""
    copy = SearchOptions.from_buffer_copy(options)
    copy.gpus, copy.gpu_count, copy.cache, copy.first_target = None, 0, None, None
    return bytes(copy)


class Progress(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t)] + [(n, c_uint64) for n in (
        "models_started", "models_done", "targets", "residues", "target_bytes_read", "target_bytes_total",
        "cells", "cells_queued")] + [("targets_complete", c_int32), ("reserved", c_int32)]


class Target(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("name", c_char_p), ("accession", c_char_p), ("description", c_char_p),
                ("residues", c_char_p), ("index", c_uint64), ("length", c_uint64)]


class PartInfo(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t)] + [(n, c_uint32) for n in ("part", "last_part", "parts", "reserved")] + [
        (n, c_uint64) for n in ("first_target", "last_target", "first_model", "last_model", "targets_reported",
                                "domains")] + [("content", ctypes.c_char * 64)] + [
        (n, c_uint32) for n in ("model_part", "last_model_part", "model_parts", "reserved_too")]


class BuildOptions(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("matrix", c_char_p), ("matrix_file", c_char_p), ("gap_open", c_double),
                ("gap_extend", c_double), ("single_rows_by_matrix", c_int32), ("columns", c_int32),
                ("least_occupied", c_double), ("fragment", c_double), ("weights", c_int32),
                ("effective", c_int32)] + [(n, c_double) for n in (
                    "weight_identity", "effective_number", "relative_entropy", "total_entropy",
                    "effective_identity")] + [(n, c_int32) for n in (
                        "prior", "most_insertions", "msv_length", "msv_targets", "viterbi_length",
                        "viterbi_targets", "forward_length", "forward_targets")] + [
                            ("tail_mass", c_double), ("seed", c_uint32), ("threads", c_int32)]


class IterationOptions(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t)] + [(n, c_int32) for n in (
        "rounds", "prefer_accession", "alignments", "text_width", "a3m", "reserved")] + [
            ("search", POINTER(SearchOptions)), ("build", POINTER(BuildOptions)), ("alignment_file", c_char_p)]


class RoundInfo(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("query", c_size_t)] + [(n, c_int32) for n in (
        "number", "converged", "last", "reserved")] + [("included", c_uint64), ("new_targets", c_uint64)]


ResultCallback = CFUNCTYPE(c_int32, c_void_p, c_void_p)
ProgressCallback = CFUNCTYPE(c_int32, c_void_p, POINTER(Progress))
WarningCallback = CFUNCTYPE(None, c_void_p, c_void_p)
VisitCallback = CFUNCTYPE(c_int32, c_void_p, c_void_p)
TargetCallback = CFUNCTYPE(c_int32, c_void_p, POINTER(Target))


class Callbacks(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("context", c_void_p), ("result", ResultCallback),
                ("progress", ProgressCallback), ("interval_ms", c_uint32), ("reserved", c_uint32),
                ("cancellation", c_void_p), ("warning", WarningCallback)]


class FilterCounts(Structure):
    _fields_: ClassVar[Any] = [(n, c_uint64) for n in ("targets", "residues", "msv", "bias", "viterbi", "forward")]


class SearchStatistics(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("backend", c_char_p), ("device", c_char_p), ("threads", c_int32),
                ("reserved", c_int32)] + [(n, c_uint64) for n in (
                    "models", "targets", "residues", "passes", "hits_reported", "domains_reported",
                    "device_cells", "device_launches")] + [(n, c_double) for n in (
                        "wall_seconds", "read_seconds", "setup_seconds", "msv_seconds", "bias_seconds",
                        "viterbi_seconds", "scoring_seconds")] + [
                            ("counts", FilterCounts), ("streamed", c_int32), ("spooled", c_int32),
                            ("ssv_seconds", c_double), ("report_seconds", c_double), ("verified", c_uint64),
                            ("peak_resident_bytes", c_uint64), ("device_busy_seconds", c_double),
                            ("device_active_seconds", c_double), ("device_peak_bytes", c_uint64),
                            ("device_upload_bytes", c_uint64), ("kernels", c_uint64),
                            ("kernels_compiled", c_uint64), ("kernels_loaded", c_uint64),
                            ("compile_seconds", c_double), ("json", c_char_p)]


class ResultInfo(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("model_index", c_size_t), ("model_name", c_char_p),
                ("model_accession", c_char_p), ("model_description", c_char_p), ("model_length", c_int32),
                ("has_alignments", c_int32), ("hits", c_size_t), ("reported", c_size_t), ("included", c_size_t),
                ("domains", c_size_t), ("Z", c_double), ("domZ", c_double), ("seconds", c_double),
                ("counts", FilterCounts)]


class Hit(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("name", c_char_p), ("accession", c_char_p), ("description", c_char_p),
                ("index", c_uint64), ("e_value", c_double), ("score", c_double), ("bias", c_double),
                ("expected_domains", c_double), ("length", c_int32), ("reported", c_int32),
                ("included", c_int32), ("regions", c_int32), ("clustered", c_int32), ("overlaps", c_int32),
                ("envelopes", c_int32), ("reserved", c_int32), ("best_domain", c_size_t),
                ("first_domain", c_size_t), ("domains", c_size_t)]


class Domain(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("hit", c_size_t)] + [(n, c_int32) for n in (
        "envelope_from", "envelope_to", "alignment_from", "alignment_to", "model_from", "model_to", "reported",
        "included")] + [(n, c_double) for n in (
            "score", "bias", "conditional_e_value", "independent_e_value", "accuracy")] + [(n, c_char_p) for n in (
                "model", "match", "sequence", "posterior", "reference", "structure")]


class ReportOptions(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("prefer_accession", c_int32), ("alignments", c_int32),
                ("text_width", c_int32), ("reserved", c_int32), ("search", POINTER(SearchOptions)),
                ("page_title", c_char_p), ("page_targets", c_uint64)]


class RunInfo(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t)] + [(n, c_char_p) for n in (
        "program", "version", "query_file", "target_file", "settings", "folder", "date")]


class Device(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("name", ctypes.c_char * 128)] + [(n, c_int32) for n in (
        "ordinal", "major", "minor", "sm_count", "clock_khz", "max_threads_per_sm", "max_blocks_per_sm",
        "registers_per_sm", "max_registers_per_thread", "shared_per_sm", "shared_per_block",
        "shared_reserved_per_block")] + [("memory_bytes", c_int64), ("l2_bytes", c_int64),
                                         ("memory_bandwidth", c_double)]


class DatabaseInfo(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("format_version", c_int32), ("alphabet", c_int32), ("targets", c_uint64),
                ("residues", c_uint64), ("shortest", c_uint32), ("median", c_uint32), ("longest", c_uint32),
                ("reserved", c_uint32), ("file_bytes", c_uint64), ("identity", c_uint64)]


class PlanOptions(Sized):
    _fields_: ClassVar[Any] = [("size", c_size_t), ("variant", c_char_p), ("policy", c_int32), ("exact_length", c_int32),
                ("alphabet_codes", c_int32), ("reserved", c_int32)]


# The C name of each struct, for the tests, which compare the layouts.
STRUCTS: Dict[str, Type[Structure]] = {"hmmjit_model_info": ModelInfo, "hmmjit_cache_settings": CacheSettings,
           "hmmjit_cache_statistics": CacheStatistics, "hmmjit_search_options": SearchOptions,
           "hmmjit_progress": Progress, "hmmjit_callbacks": Callbacks, "hmmjit_filter_counts": FilterCounts,
           "hmmjit_search_statistics": SearchStatistics, "hmmjit_result_info": ResultInfo, "hmmjit_hit": Hit,
           "hmmjit_domain": Domain, "hmmjit_report_options": ReportOptions, "hmmjit_run_info": RunInfo,
           "hmmjit_device": Device, "hmmjit_database_info": DatabaseInfo, "hmmjit_plan_options": PlanOptions, "hmmjit_target": Target, "hmmjit_part_info": PartInfo,
           "hmmjit_build_options": BuildOptions, "hmmjit_iteration_options": IterationOptions,
           "hmmjit_round_info": RoundInfo}


class Error(Exception):
    """A failure of the library. `message`, `where` and `remedy` are its parts."""

    message: str
    where: str
    remedy: str

    def __init__(self, text: str, message: str = "", where: str = "", remedy: str = "") -> None:
        super().__init__(text)
        self.message, self.where, self.remedy = message or text, where, remedy


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


def text(value: Optional[bytes]) -> str:
    """Text of the library; names are bytes and need not be UTF-8."""
    return value.decode("utf-8", "surrogateescape") if value else ""


def encode(value: Union[None, str, bytes, os.PathLike[str], os.PathLike[bytes]]) -> Optional[bytes]:
    """Text or a path as bytes; None stays NULL. C texts end at a NUL: what has one is refused."""
    if value is None:
        return value
    if not isinstance(value, bytes):
        value = os.fspath(value)
    if not isinstance(value, bytes):
        value = value.encode("utf-8", "surrogateescape")
    if b"\0" in value:
        raise UsageError(f"a NUL character in {value!r}")
    return value


def _declare(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


for _name in ("text", "message", "where", "remedy"):
    _declare("hmmjit_error_" + _name, c_char_p, c_void_p)
_declare("hmmjit_error_free", None, c_void_p)
_declare("hmmjit_error_status", c_int32, c_void_p)
_declare("hmmjit_version", c_char_p)
_declare("hmmjit_text_data", c_void_p, c_void_p)
_declare("hmmjit_text_size", c_size_t, c_void_p)


def exception(error: Any) -> Error:
    """The exception for an error object, which stays its owner's."""
    parts = [text(getattr(library, "hmmjit_error_" + n)(error)) for n in ("text", "message", "where", "remedy")]
    return ERRORS.get(library.hmmjit_error_status(error), Error)(*parts)


def _raise(status: int, error: Any) -> NoReturn:
    if not error:  # not even memory for the error
        raise ERRORS.get(status, Error)(f"status {status}")
    made = exception(error)
    library.hmmjit_error_free(error)
    raise made


def _function(name: str, *arguments: Any) -> Callable[..., None]:
    """A C function that returns a status, as one that raises."""
    function = _declare(name, c_int32, *arguments, POINTER(c_void_p))

    def call(*values: Any) -> None:
        error = c_void_p()
        status = function(*values, byref(error))
        if status != 0:
            _raise(status, error)

    return call


class Handle:
    """Owns an opaque pointer of the library."""

    def __init__(self, kind: str, make: Callable[..., Any], *arguments: Any) -> None:
        self._free = _declare(f"hmmjit_{kind}_free", None, c_void_p)
        self.pointer: Any = c_void_p()
        make(*arguments, byref(self.pointer))

    def __del__(self) -> None:
        if getattr(self, "pointer", None):
            self._free(self.pointer)
            self.pointer = None


_OUT = POINTER(c_void_p)
models_from_file = _function("hmmjit_models_from_file", c_char_p, _OUT)
models_load = _function("hmmjit_models_load", c_char_p, _OUT)
models_from_memory = _function("hmmjit_models_from_memory", c_char_p, c_size_t, c_char_p, _OUT)
models_create = _function("hmmjit_models_create", _OUT)
models_add = _function("hmmjit_models_add", c_void_p, c_void_p, c_size_t)
models_get = _function("hmmjit_models_get", c_void_p, c_size_t, POINTER(ModelInfo))
models_for_each = _function("hmmjit_models_for_each", c_void_p, VisitCallback, c_void_p)
models_count = _declare("hmmjit_models_count", c_size_t, c_void_p)
models_add_with_query = _function("hmmjit_models_add_with_query", c_void_p, c_void_p, c_size_t, c_char_p,
                                  c_char_p, c_char_p)
models_write = _function("hmmjit_models_write", c_void_p, c_size_t, c_int32, _OUT)
targets_for_each = _function("hmmjit_targets_for_each", c_void_p, c_int32, c_uint64, TargetCallback, c_void_p)
targets_from_file = _function("hmmjit_targets_from_file", c_char_p, c_char_p, _OUT)
targets_load = _function("hmmjit_targets_load", c_char_p, c_int32, c_char_p, _OUT)
targets_from_memory = _function("hmmjit_targets_from_memory", c_char_p, c_size_t, c_int32, c_char_p, c_char_p,
                                _OUT)
targets_create = _function("hmmjit_targets_create", c_int32, _OUT)
targets_add = _function("hmmjit_targets_add", c_void_p, c_char_p, c_char_p, c_char_p, c_char_p, c_size_t)
targets_append = _function("hmmjit_targets_append", c_void_p, c_void_p)
targets_count = _declare("hmmjit_targets_count", c_uint64, c_void_p)
targets_residues = _declare("hmmjit_targets_residues", c_uint64, c_void_p)
database_build = _function("hmmjit_database_build", POINTER(c_void_p), c_size_t, c_int32, c_char_p)
database_get_info = _function("hmmjit_database_get_info", c_char_p, POINTER(DatabaseInfo), _OUT)
database_verify = _function("hmmjit_database_verify", c_char_p)
cache_open = _function("hmmjit_cache_open", POINTER(CacheSettings), _OUT)
cache_directory = _declare("hmmjit_cache_directory", c_char_p, c_void_p)
cache_get_statistics = _function("hmmjit_cache_get_statistics", c_void_p, POINTER(CacheStatistics))
cache_trim = _function("hmmjit_cache_trim", c_void_p, c_uint64, POINTER(c_uint64))
cache_clear = _function("hmmjit_cache_clear", c_void_p, POINTER(c_uint64))
cache_export = _function("hmmjit_cache_export", c_void_p, c_char_p, POINTER(c_uint64))
cache_import = _function("hmmjit_cache_import", c_void_p, c_char_p, POINTER(c_uint64))
search_options_init = _function("hmmjit_search_options_init", POINTER(SearchOptions))
cancellation_create = _function("hmmjit_cancellation_create", _OUT)
cancellation_cancel = _declare("hmmjit_cancellation_cancel", None, c_void_p)
search = _function("hmmjit_search", c_void_p, c_void_p, POINTER(SearchOptions), POINTER(Callbacks), _OUT)
results_count = _declare("hmmjit_results_count", c_size_t, c_void_p)
results_get = _declare("hmmjit_results_get", c_void_p, c_void_p, c_size_t)
results_statistics = _function("hmmjit_results_statistics", c_void_p, POINTER(SearchStatistics))
results_get_options = _function("hmmjit_results_get_options", c_void_p, POINTER(SearchOptions))
_FILES = POINTER(c_char_p)
search_part = _function("hmmjit_search_model_part", c_void_p, c_char_p, c_uint32, c_uint32, c_uint32, c_uint32, c_char_p,
                        POINTER(SearchOptions), POINTER(Callbacks), POINTER(PartInfo))
merge_parts = _function("hmmjit_merge_parts", _FILES, c_size_t, POINTER(Callbacks), _OUT)
join_parts = _function("hmmjit_join_parts", _FILES, c_size_t, c_char_p, POINTER(PartInfo))
part_get_info = _function("hmmjit_part_get_info", c_char_p, POINTER(PartInfo), _OUT)
part_get_options = _function("hmmjit_part_get_options", c_char_p, POINTER(SearchOptions))
part_verify = _function("hmmjit_part_verify", c_char_p)
parts_missing = _function("hmmjit_parts_missing", _FILES, c_size_t, _OUT)
build_options_init = _function("hmmjit_build_options_init", POINTER(BuildOptions))
build_models = _function("hmmjit_build_models", c_void_p, POINTER(BuildOptions), _OUT)
build_from_alignments = _function("hmmjit_build_from_alignments", c_char_p, c_char_p, POINTER(BuildOptions), _OUT)
build_from_alignment_memory = _function("hmmjit_build_from_alignment_memory", c_char_p, c_size_t, c_char_p,
                                        c_char_p, POINTER(BuildOptions), _OUT)
iteration_options_init = _function("hmmjit_iteration_options_init", POINTER(IterationOptions))
iteration_create = _function("hmmjit_iteration_create", c_void_p, c_void_p, POINTER(IterationOptions), _OUT)
iteration_queries = _declare("hmmjit_iteration_queries", c_size_t, c_void_p)
iteration_done = _declare("hmmjit_iteration_done", c_int32, c_void_p)
iteration_next = _function("hmmjit_iteration_next", c_void_p, POINTER(Callbacks), _OUT)
rounds_count = _declare("hmmjit_rounds_count", c_size_t, c_void_p)
rounds_get = _declare("hmmjit_rounds_get", c_void_p, c_void_p, c_size_t)
round_get_info = _function("hmmjit_round_get_info", c_void_p, POINTER(RoundInfo))
round_result = _declare("hmmjit_round_result", c_void_p, c_void_p)
round_model = _function("hmmjit_round_model", c_void_p, _OUT)
round_alignment = _declare("hmmjit_round_alignment", c_char_p, c_void_p)
report_add_iteration = _function("hmmjit_report_add_iteration", c_void_p, c_void_p, c_size_t)
result_get_info = _function("hmmjit_result_get_info", c_void_p, POINTER(ResultInfo))
result_get_hits = _function("hmmjit_result_get_hits", c_void_p, c_size_t, c_size_t, POINTER(Hit))
result_get_domains = _function("hmmjit_result_get_domains", c_void_p, c_size_t, c_size_t, POINTER(Domain))
result_merge = _function("hmmjit_result_merge", POINTER(c_void_p), c_size_t, POINTER(SearchOptions), _OUT)
result_write = _function("hmmjit_result_write", c_void_p, _OUT)
result_read = _function("hmmjit_result_read", c_char_p, c_size_t, _OUT)
result_copy = _function("hmmjit_result_copy", c_void_p, _OUT)
report_create = _function("hmmjit_report_create", c_int32, c_char_p, POINTER(ReportOptions), _OUT)
report_add = _function("hmmjit_report_add", c_void_p, c_void_p)
report_add_text = _function("hmmjit_report_add_text", c_void_p, c_char_p)
main_report_header = _function("hmmjit_main_report_header", POINTER(RunInfo), POINTER(ReportOptions), _OUT)
report_complete = _function("hmmjit_report_complete", c_void_p, POINTER(RunInfo))
report_take_text = _function("hmmjit_report_take_text", c_void_p, _OUT)
device_count = _function("hmmjit_device_count", POINTER(c_int32), _OUT)
device_get = _function("hmmjit_device_get", c_int32, POINTER(Device))
device_find = _function("hmmjit_device_find", c_char_p, POINTER(Device))
engine_create = _function("hmmjit_engine_create", c_void_p, _OUT)
engine_plan_stage = _function("hmmjit_engine_plan_stage", c_void_p, c_char_p, c_int32, POINTER(Device),
                              POINTER(PlanOptions), _OUT)
plan_json = _declare("hmmjit_plan_json", c_char_p, c_void_p)


def take_text(handle: Handle) -> bytes:
    """The contents of a hmmjit_text."""
    return ctypes.string_at(library.hmmjit_text_data(handle.pointer), library.hmmjit_text_size(handle.pointer))
