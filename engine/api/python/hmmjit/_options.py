"""Options of a search."""
from __future__ import annotations

from ctypes import addressof, byref, c_int32
import math
from typing import Any, Dict, List, Mapping, Optional

from . import _binding as _b
from ._common import INT32, INT64, UINT32, UsageError, choose, integer, real, size_of, unknown_option
from ._interface import OPTIONS, SearchOptions as SearchOptions

CUTOFFS: Dict[Optional[str], int] = {None: 0, "gathering": 1, "noise": 2, "trusted": 3, "ga": 1, "nc": 2, "tc": 3}
_TABLE = 4
MISSING = {"error": 0, "skip": 1, "default": 2}
DEVICES = {"auto": 0, "cpu": 1, "gpu": 2}
_LARGEST = {"seed": UINT32, "threads": 1024, "verify": INT32, "target_count": INT64}
_SCORES = ("T", "domT", "incT", "incdomT")


def _value(name: str, value: Any) -> Any:
    """The value of the C member."""
    if name in _LARGEST:
        return integer(name, value, 0, _LARGEST[name])
    if name in ("memory", "vram"):
        return size_of(name, value)
    if name == "cutoffs":
        return choose("cutoffs", value, CUTOFFS)
    if name == "cut_missing":
        return choose("cut_missing", value, MISSING)
    if name == "first_target":
        return _b.encode(value)
    if name == "cache":
        from ._machine import Cache
        if not isinstance(value, Cache):
            raise UsageError(f"cache takes a Cache, not {value!r}")
        return value._handle.pointer
    return bool(value) if isinstance(OPTIONS[name][1], bool) else real(name, value, positive=name not in _SCORES)


def set_table(out: Any, cutoffs: Mapping[str, Any]) -> Any:
    """Sets the cutoffs of models in `out`; returns the array, which must live as long as `out`."""
    array = (_b.Cutoff * len(cutoffs))()
    for row, (model, scores) in zip(array, cutoffs.items()):
        try:
            row.score, row.domain_score = (math.nan if s is None else real(f"cutoffs[{model!r}]", s) for s in scores)
        except (TypeError, ValueError):
            raise UsageError(f"cutoffs[{model!r}] takes two scores in bits (of targets, of domains), None for no "
                             f"threshold, not {scores!r}") from None
        row.model = _b.encode(model)
    out.cutoffs, out.cutoff_table, out.cutoff_count = _TABLE, addressof(array), len(array)
    return array


def make_options(options: Mapping[str, Any], function: str = "search", **defaults: float) -> Any:
    """The C struct. `defaults`: those that differ from hmmsearch's."""
    out = _b.SearchOptions()
    _b.search_options_init(byref(out))
    for name, number in defaults.items():
        setattr(out, name, number)
    keep: List[Any] = []
    for name, value in options.items():
        if name not in OPTIONS:
            raise unknown_option(function, name, OPTIONS)
        if value is None:
            continue
        if name == "cutoffs" and isinstance(value, Mapping):
            keep.append(set_table(out, value))
            continue
        if name != "device":
            keep.append(value)
            setattr(out, OPTIONS[name][0], _value(name, value))
            continue
        kind, colon, ordinals = str(value).partition(":")
        out.device = choose("device", kind, DEVICES)
        if colon:
            numbers = ordinals.split(",")
            if kind.lower() != "gpu" or not all(n.isascii() and n.isdigit() for n in numbers):
                raise UsageError(f"no device {value!r}: 'auto', 'cpu', 'gpu', or ordinals as in 'gpu:0,1'")
            gpus = (c_int32 * len(numbers))(*(integer("device", int(n), 0, INT32) for n in numbers))
            keep.append(gpus)
            out.gpus, out.gpu_count = addressof(gpus), len(gpus)
    out._keep = keep
    return out


def options_of(struct: Any) -> Dict[str, Any]:
    """Options that determine results, by their names in Python; unset ones are None."""
    out: Dict[str, Any] = {}
    for name, (member, default) in OPTIONS.items():
        value = getattr(struct, member)
        if name == "cutoffs" and value == _TABLE:
            rows = (_b.Cutoff * struct.cutoff_count).from_address(struct.cutoff_table) if struct.cutoff_table else ()
            value = {_b.text(row.model): tuple(None if s != s else s for s in (row.score, row.domain_score))
                     for row in rows}
        elif name in ("cutoffs", "cut_missing"):
            value = next(n for n, number in (CUTOFFS if name == "cutoffs" else MISSING).items() if number == value)
        elif name in ("threads", "device", "memory", "vram", "verify", "cache", "first_target", "target_count"):
            continue
        elif default is None:
            value = None if value != value or (value == 0 and name not in _SCORES) else value
        out[name] = type(default)(value) if isinstance(default, (int, float)) else value
    return out
