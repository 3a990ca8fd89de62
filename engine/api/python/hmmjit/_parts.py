"""A search divided among machines: part files, and their merge."""
from __future__ import annotations

import os
from ctypes import byref, c_char_p
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

from . import _binding as _b
from ._common import UINT32, PathLike, UsageError, integer, is_path
from ._inputs import Models, ModelsSource
from ._interface import SearchOptions
from ._options import make_options
from ._results import Results
from ._search import FileReports, Run, refuse_inputs, results_of, shows_options, statistics_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._search import OnProgress, OnWarning


class PartInfo(NamedTuple):
    """The header of a part file. Indices count from 0; the last is excluded."""

    part: int  #: shares `part` to `last_part` of `parts`, from 1
    last_part: int
    parts: int
    model_part: int  #: the same of the models
    last_model_part: int
    model_parts: int
    first_target: int
    last_target: int
    first_model: int
    last_model: int
    targets_reported: int
    domains: int
    content: str  #: digest: equal for any threads, memory, device and order of merging
    settings: Dict[str, str]  #: equal in all parts of a search


def part_info(path: PathLike) -> PartInfo:
    """Describes a part file."""
    info = _b.PartInfo()
    settings = _b.Handle("text", lambda out: _b.part_get_info(_b.encode(path), byref(info), out))
    lines = [line.partition(": ") for line in _b.text(_b.take_text(settings)).split("\n") if line]
    numbers = {name: getattr(info, name) for name in PartInfo._fields[:12]}
    return PartInfo(**numbers, content=_b.text(info.content), settings={name: value for name, _, value in lines})


def _files(files: Union[PathLike, Iterable[PathLike]]) -> Tuple[Any, int]:
    """Paths for the C interface; replaces a folder by its *.hjpart."""
    paths: List[Any] = []
    given: Any = [files] if is_path(files) else files
    for path in given:
        if os.path.isdir(path):
            inside = sorted(name for name in os.listdir(path) if name.endswith(".hjpart"))
            if not inside:
                raise _b.InputError(f"{os.fspath(path)}: no part (*.hjpart) in the folder")
            paths += [os.path.join(path, name) for name in inside]
        else:
            paths.append(path)
    if not paths:
        raise UsageError("no part is given")
    return (c_char_p * len(paths))(*(_b.encode(path) for path in paths)), len(paths)


def search_part(models: ModelsSource, database: PathLike, part: int, parts: int, path: PathLike, *,
                model_part: int = 1, model_parts: int = 1, progress: Optional[OnProgress] = None, interval: float = 0.25,
                warning: Optional[OnWarning] = None, **options: Unpack[SearchOptions]) -> PartInfo:
    """Searches part `part` (from 1) of `parts` of a target database and writes it to the file `path`, which appears
    once complete, like `hmmjit search --part`. `model_part` (from 1) of `model_parts` limits the search to a share of
    the models, like `--model-part`; `models` must be all models, and a file of models needs an index (`hmmjit part
    index`).

    Any host may search any part; the parts of a search need the same models, and equal thresholds and filters. Other
    arguments: as in search, without first_target, target_count and a seed of 0.
    """
    out = make_options(options, "search_part")
    read = models if isinstance(models, Models) else Models(models)
    refuse_inputs("the part", path, read._files)  # the library compares the other inputs
    now = read._handle
    numbers = [integer(name, number, 0, UINT32) for name, number in
               (("part", part), ("parts", parts), ("model_part", model_part), ("model_parts", model_parts))]
    files = _b.encode(database), _b.encode(path)
    Run(lambda callbacks: _b.search_model_part(now, files[0], *numbers, files[1], byref(out), callbacks, None), None,
        progress, interval, warning).wait()
    return part_info(path)


shows_options(search_part, ("first_target", "target_count"))


def merge_parts(files: Union[PathLike, Iterable[PathLike]]) -> Results:
    """The results of the whole search, from the files of all its parts in any order: equal to search's, without
    unreported targets. Their reports have the same bytes. A folder means its ``*.hjpart``. Parts do not store a table
    of cutoffs: `options` of such a search have an empty one."""
    array, count = _files(files)
    handle = Run(lambda callbacks: _b.Handle("results", _b.merge_parts, array, count, callbacks)).wait()
    options = _b.SearchOptions()
    _b.results_get_options(handle.pointer, byref(options))
    return results_of(handle, options)


def merge_parts_to_files(files: Union[PathLike, Iterable[PathLike]], outputs: Mapping[str, PathLike], *,
                         report: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """As merge_parts, but writes outputs to files and holds one model at a time; returns the statistics.
    `outputs` and `report`: as `files` and `report` of search_to_files."""
    array, count = _files(files)
    options = _b.SearchOptions()
    _b.part_get_options(array[0], byref(options))
    reports = FileReports(outputs, options, report, array[:count])
    handle = Run(lambda callbacks: _b.Handle("results", _b.merge_parts, array, count, callbacks),
                 reports.write).wait()
    reports.complete()
    return statistics_of(handle)


def join_parts(files: Union[PathLike, Iterable[PathLike]], path: PathLike) -> PartInfo:
    """Writes adjacent parts as one part, with the content of a search of that part."""
    array, count = _files(files)
    _b.join_parts(array, count, _b.encode(path), None)
    return part_info(path)


def verify_part(path: PathLike) -> PartInfo:
    """Checks every byte of a part file; InputError at the first damage."""
    _b.part_verify(_b.encode(path))
    return part_info(path)


def missing_parts(files: Union[PathLike, Iterable[PathLike]]) -> str:
    """The missing parts, as a list of numbers from 1: "3,17,40-42"; empty if the files hold all parts."""
    array, count = _files(files)
    return _b.text(_b.take_text(_b.Handle("text", _b.parts_missing, array, count)))
