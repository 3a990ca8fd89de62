"""Options of a search."""
from __future__ import annotations

from ctypes import byref, c_int32
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, TypedDict, Union

from . import _binding as _b
from ._common import INT32, INT64, UINT32, UsageError, choose, integer, real, size_of, unknown_option

if TYPE_CHECKING:
    from ._machine import Cache

CUTOFFS: Dict[Optional[str], int] = {None: 0, "gathering": 1, "noise": 2, "trusted": 3, "ga": 1, "nc": 2, "tc": 3}


class SearchOptions(TypedDict, total=False):
    """Options of a search, with hmmsearch's names, meaning and defaults; None is the default.

    E, domE, incE, incdomE: thresholds by E-value. T, domT, incT, incdomT: by score in bits, in their place.
    Z, domZ: numbers of targets for E-values. cutoffs: "gathering", "noise" or "trusted", those of the models. F1,
    F2, F3: P-values of the filters. max: no filters. first_target, target_count: --restrictdb_stkey and _n.
    alignments: False saves memory. threads: 0 for all cores. memory: bytes, or "400M", "2G"; 0 for half of what is
    free. device: "auto", "cpu", "gpu", or ordinals as in "gpu:0,1". vram: bytes of each GPU. verify: targets per
    model whose GPU result is checked. cache: of kernels.
    """

    E: Optional[float]
    T: Optional[float]
    domE: Optional[float]
    domT: Optional[float]
    incE: Optional[float]
    incT: Optional[float]
    incdomE: Optional[float]
    incdomT: Optional[float]
    Z: Optional[float]
    domZ: Optional[float]
    cutoffs: Optional[str]
    max: Optional[bool]
    F1: Optional[float]
    F2: Optional[float]
    F3: Optional[float]
    bias_filter: Optional[bool]
    null2: Optional[bool]
    seed: Optional[int]
    first_target: Optional[str]
    target_count: Optional[int]
    alignments: Optional[bool]
    threads: Optional[int]
    memory: Union[int, str, None]
    device: Optional[str]
    vram: Union[int, str, None]
    verify: Optional[int]
    cache: Optional[Cache]


OPTION_NAMES = tuple(SearchOptions.__annotations__)
_POSITIVE = ("E", "domE", "incE", "incdomE", "Z", "domZ", "F1", "F2", "F3")
_SCORES = ("T", "domT", "incT", "incdomT")
_INTEGERS = {"seed": UINT32, "threads": 1024, "verify": INT32, "target_count": INT64}
_FLAGS = {"bias_filter": "bias_filter", "null2": "null2", "max": "max_sensitivity",
          "alignments": "keep_alignments"}


def make_options(options: Mapping[str, Any], function: str = "search", **defaults: float) -> Any:
    """The C struct; `defaults`: other than hmmsearch's."""
    out = _b.SearchOptions()
    _b.search_options_init(byref(out))
    for name, number in defaults.items():
        setattr(out, name, number)
    keep: List[Any] = []
    for name, value in options.items():
        if name not in OPTION_NAMES:
            raise unknown_option(function, name, OPTION_NAMES)
        if value is None:
            continue
        if name in _POSITIVE or name in _SCORES:
            setattr(out, name, real(name, value, positive=name in _POSITIVE))
        elif name in _INTEGERS:
            setattr(out, name, integer(name, value, 0, _INTEGERS[name]))
        elif name in _FLAGS:
            setattr(out, _FLAGS[name], bool(value))
        elif name in ("memory", "vram"):
            setattr(out, name, size_of(name, value))
        elif name == "cutoffs":
            out.cutoffs = choose("cutoffs", value, CUTOFFS)
        elif name == "first_target":
            out.first_target = _b.encode(value)
        elif name == "device":
            kind, colon, ordinals = str(value).partition(":")
            out.device = choose("device", kind, {"auto": 0, "cpu": 1, "gpu": 2})
            if colon:
                numbers = ordinals.split(",")
                if kind.lower() != "gpu" or not all(n.isascii() and n.isdigit() for n in numbers):
                    raise UsageError(f"no device {value!r}: 'auto', 'cpu', 'gpu', or ordinals as in 'gpu:0,1'")
                gpus = [integer("device", int(n), 0, INT32) for n in numbers]
                keep.append((c_int32 * len(gpus))(*gpus))
                out.gpus, out.gpu_count = keep[-1], len(gpus)
        else:
            keep.append(value)
            out.cache = value._handle.pointer
    out._keep = keep
    return out
