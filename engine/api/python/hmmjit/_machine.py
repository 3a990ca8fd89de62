"""Databases, kernel caches, devices and plans."""
from __future__ import annotations

import json
from ctypes import byref, c_int32, c_uint64, c_void_p
from typing import Any, Dict, List, Optional

from . import _binding as _b
from ._common import ALPHABETS, INT32, UINT64, PathLike, choose, integer, is_path
from ._inputs import Targets, alphabet_of, sequences_of
from ._search import refuse_inputs


class Cache:
    """The kernel cache of GPU searches. Unset arguments: the environment's (HMMJIT_CACHE_*).

    `directory`: the user's folder of kernels, "" for none. `mode`: "off", "ro", "rw", "refresh" or "strict".
    `max_bytes`: bound on that folder; 0: the environment's. Example: search(models, targets, cache=Cache("kernels"))
    """

    _MODES: Dict[Any, int] = {None: -1, "off": 0, "ro": 1, "rw": 2, "refresh": 3, "strict": 4}

    def __init__(self, directory: Optional[PathLike] = None, mode: Optional[str] = None,
                 max_bytes: int = 0) -> None:
        settings = _b.CacheSettings(directory=None if directory is None else _b.encode(directory),
                                    mode=choose("cache mode", mode, self._MODES),
                                    max_bytes=integer("max_bytes", max_bytes, 0, UINT64))
        self._handle = _b.Handle("cache", _b.cache_open, byref(settings))

    @property
    def directory(self) -> str:
        """The user's folder; "" if there is none."""
        return _b.text(_b.cache_directory(self._handle.pointer))

    @property
    def statistics(self) -> Dict[str, int]:
        """Counts of kernels found, stored and refused through this object, and the size of the folder."""
        out = _b.CacheStatistics()
        _b.cache_get_statistics(self._handle.pointer, byref(out))
        return {name: getattr(out, name) for name, *_ in out._fields_[1:]}

    def _counted(self, function: Any, *arguments: Any) -> int:
        count = c_uint64()
        function(self._handle.pointer, *arguments, byref(count))
        return int(count.value)

    def trim(self, max_bytes: int = 0) -> int:
        """Removes least recently used kernels until `max_bytes` are left (0: the cache's bound); returns their
        number."""
        return self._counted(_b.cache_trim, integer("max_bytes", max_bytes, 0, UINT64))

    def clear(self) -> int:
        """Removes all kernels; returns their number."""
        return self._counted(_b.cache_clear)

    def export(self, path: PathLike) -> int:
        """Writes all kernels to one file; returns their number."""
        return self._counted(_b.cache_export, _b.encode(path))

    def import_(self, path: PathLike) -> int:
        """Adds the kernels of such a file; returns the number of new ones. Import only trusted files."""
        return self._counted(_b.cache_import, _b.encode(path))


def build_database(targets: Any, path: PathLike, alphabet: Optional[str] = None) -> Dict[str, Any]:
    """Writes a target database, which searches read without parsing; use it as Targets(path).

    `targets`: Targets, anything that its constructor accepts, or a list of paths. `alphabet`: None: of the first
    targets, or "amino" if they have none. Returns database_info(path).
    """
    if isinstance(targets, (list, tuple)) and targets and all(is_path(t) or isinstance(t, Targets) for t in targets):
        inputs = [t if isinstance(t, Targets) else Targets(t, alphabet) for t in targets]
    else:
        inputs = [sequences_of(targets, alphabet, "amino")]
    for read in inputs:
        refuse_inputs("the database", path, read._files)  # the library compares the others
    pointers = (c_void_p * len(inputs))(*(t._handle.pointer for t in inputs))
    _b.database_build(pointers, len(inputs), choose("alphabet", alphabet or alphabet_of(inputs, "amino"), ALPHABETS),
                      _b.encode(path))
    return database_info(path)


def database_info(path: PathLike) -> Dict[str, Any]:
    """The header of a target database as a dict: the members of hmmjit_database_info (hmmjit.h), lengths in residues,
    file_bytes in bytes; `alphabet` by name; `program` that wrote it, and its `sources`."""
    info = _b.DatabaseInfo()
    about = _b.Handle("text", lambda pointer: _b.database_get_info(_b.encode(path), byref(info), pointer))
    out: Dict[str, Any] = {n: getattr(info, n) for n, *_ in info._fields_ if n not in ("size", "reserved")}
    out["alphabet"] = next(n for n, v in ALPHABETS.items() if v == info.alphabet)
    lines = [line.partition(" ") for line in _b.text(_b.take_text(about)).split("\n")]
    out["program"] = next((value for key, _, value in lines if key == "program"), "")
    out["sources"] = [value for key, _, value in lines if key == "source"]
    return out


def verify_database(path: PathLike) -> None:
    """Checks every byte of a target database; InputError at the first damage."""
    _b.database_verify(_b.encode(path))


def devices() -> List[Dict[str, Any]]:
    """The GPUs of this machine, as dicts with the members of hmmjit_device (hmmjit.h), sizes in bytes; empty: none.
    For example: [gpu["name"] for gpu in devices()]"""
    count = c_int32()
    out: List[Dict[str, Any]] = []
    _b.device_count(byref(count), None)
    for i in range(count.value):
        device = _b.Device()
        _b.device_get(i, byref(device))
        out.append({n: getattr(device, n) for n, *_ in device._fields_[1:]})
        out[-1]["name"] = _b.text(out[-1]["name"])
    return out


def plan(model_length: int, device: str = "H200", stage: str = "ssv", variant: Optional[str] = None,
         exact_length: bool = False) -> Dict[str, Any]:
    """The kernel for a model of this length on a device of the built-in table, and the reasons, as a dict.

    `stage`: "ssv", "msv", "bias", "viterbi", "forward", "gate", "parser", "ensemble" or "envelope". `variant`: forces
    this one. `exact_length`: specialised for the length itself, not for its size class. UsageError for an unknown
    device, stage or variant; CompileError if no variant accepts the model. For example: plan(300, "T4",
    "viterbi")["chosen"]"""
    struct = _b.Device()
    _b.device_find(_b.encode(device), byref(struct))
    engine = _b.Handle("engine", _b.engine_create, None)
    made = _b.Handle("plan", _b.engine_plan_stage, engine.pointer, _b.encode(stage),
                     integer("model_length", model_length, 1, INT32), byref(struct),
                     byref(_b.PlanOptions(variant=_b.encode(variant), exact_length=bool(exact_length))))
    parsed: Dict[str, Any] = json.loads(_b.text(_b.plan_json(made.pointer)))
    return parsed
