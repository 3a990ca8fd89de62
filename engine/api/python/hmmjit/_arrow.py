"""Columns as an Arrow C stream, through the PyCapsule interface: for polars, pandas, pyarrow and others without
any of them here. Source: https://arrow.apache.org/docs/format/CStreamInterface.html"""
from __future__ import annotations

import ctypes
from array import array
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, cast, pointer, py_object
from typing import TYPE_CHECKING, Any, Dict, List

if TYPE_CHECKING:
    from ._results import Table

Capsule = Any  # a PyCapsule


class _Schema(Structure):
    pass


class _Array(Structure):
    pass


class _Stream(Structure):
    pass


_ReleaseSchema = CFUNCTYPE(None, POINTER(_Schema))
_ReleaseArray = CFUNCTYPE(None, POINTER(_Array))
_ReleaseStream = CFUNCTYPE(None, POINTER(_Stream))
_GetSchema = CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))
_GetNext = CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))
_GetError = CFUNCTYPE(c_char_p, POINTER(_Stream))

_Schema._fields_ = [("format", c_char_p), ("name", c_char_p), ("metadata", c_char_p), ("flags", c_int64),
                    ("n_children", c_int64), ("children", POINTER(POINTER(_Schema))),
                    ("dictionary", POINTER(_Schema)), ("release", _ReleaseSchema), ("private_data", c_void_p)]
_Array._fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
                   ("n_children", c_int64), ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(_Array))),
                   ("dictionary", POINTER(_Array)), ("release", _ReleaseArray), ("private_data", c_void_p)]
_Stream._fields_ = [("get_schema", _GetSchema), ("get_next", _GetNext), ("get_last_error", _GetError),
                    ("release", _ReleaseStream), ("private_data", c_void_p)]

# What consumers hold of ours, until they release it: by number, which stands in private_data.
_held: Dict[int, Any] = {}
_next = [1]


def _hold(thing: Any) -> int:
    number = _next[0]
    _next[0] += 1
    _held[number] = thing
    return number


def _release(which: Any) -> Any:
    def release(given: Any) -> None:
        thing = given.contents
        if not thing.release:
            return
        for i in range(thing.n_children):
            child = thing.children[i]
            if child.contents.release:
                child.contents.release(child)
        _held.pop(thing.private_data, None)
        thing.release = which()

    return release


_release_schema = _ReleaseSchema(_release(_ReleaseSchema))
_release_array = _ReleaseArray(_release(_ReleaseArray))


def _column(values: List[Any]) -> Any:
    """The Arrow format of a column, and its buffers; the first would be the validity bitmap: nothing is null."""
    if all(isinstance(v, bool) for v in values) and values:
        bits = bytearray((len(values) + 7) // 8)
        for i, value in enumerate(values):
            bits[i // 8] |= value << i % 8
        return b"b", [bytes(bits)]
    if all(isinstance(v, int) for v in values) and values:
        return b"l", [array("q", values).tobytes()]
    if all(isinstance(v, (int, float)) for v in values) and values:
        return b"g", [array("d", values).tobytes()]
    texts = [str(v).encode("utf-8", "replace") for v in values]
    offsets = array("q", [0])
    for text in texts:
        offsets.append(offsets[-1] + len(text))
    return b"U", [offsets.tobytes(), b"".join(texts)]


def _fill_schema(out: Any, format: bytes, name: bytes, children: List[Any]) -> None:
    made = []
    for child_format, child_name in children:
        child = _Schema()
        _fill_schema(child, child_format, child_name, [])
        made.append(pointer(child))
    pointers = (POINTER(_Schema) * len(made))(*made)
    out.format, out.name, out.metadata, out.flags = format, name, None, 0
    out.n_children, out.children = len(made), cast(pointers, POINTER(POINTER(_Schema))) if made else None
    out.dictionary, out.release = None, _release_schema
    out.private_data = _hold((format, name, pointers, made))


def _fill_array(out: Any, length: int, buffers: List[Any], children: List[Any]) -> None:
    made = []
    for child_buffers in children:
        child = _Array()
        _fill_array(child, length, child_buffers, [])
        made.append(pointer(child))
    pointers = (POINTER(_Array) * len(made))(*made)
    held = [ctypes.create_string_buffer(b, max(1, len(b))) for b in buffers]
    addresses = (c_void_p * (1 + len(held)))(None, *(ctypes.addressof(b) for b in held))
    out.length, out.null_count, out.offset = length, 0, 0
    out.n_buffers, out.n_children = len(addresses), len(made)
    out.buffers = cast(addresses, POINTER(c_void_p))
    out.children = cast(pointers, POINTER(POINTER(_Array))) if made else None
    out.dictionary, out.release = None, _release_array
    out.private_data = _hold((addresses, held, pointers, made))


def stream_of(table: Table) -> Capsule:
    """A capsule with a stream of one record batch."""
    from ._results import COLUMN_TYPES
    columns = {name: [v.item() if hasattr(v, "item") else v for v in values] for name, values in table.items()}
    described = {name: _column(values) if values else (COLUMN_TYPES.get(name, b"g"), [b"\0" * 8, b""])
                 for name, values in columns.items()}
    rows = table.rows
    state = {"sent": False}

    def get_schema(_: Any, out: Any) -> int:
        _fill_schema(out.contents, b"+s", b"", [(format, name.encode()) for name, (format, _) in described.items()])
        return 0

    def get_next(_: Any, out: Any) -> int:
        if state["sent"]:
            out.contents.release = _ReleaseArray()  # the end
            return 0
        state["sent"] = True
        _fill_array(out.contents, rows, [], [buffers if format in (b"U",) else buffers[:1]
                                             for format, buffers in described.values()])
        return 0

    def release(given: Any) -> None:
        if given.contents.release:
            _held.pop(given.contents.private_data, None)
            given.contents.release = _ReleaseStream()

    stream = _Stream(_GetSchema(get_schema), _GetNext(get_next), _GetError(lambda _: None), _ReleaseStream(release))
    stream.private_data = _hold(stream)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = py_object, (c_void_p, c_char_p, c_void_p)
    return new(ctypes.addressof(stream), _NAME, cast(_destroy, c_void_p))


_NAME = b"arrow_array_stream"


def _destroy_capsule(capsule: int) -> None:
    """Releases a stream that nobody has taken."""
    get = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    address = get(capsule, _NAME)
    if address:
        stream = _Stream.from_address(address)
        if stream.release:
            stream.release(pointer(stream))


_destroy = ctypes.PYFUNCTYPE(None, c_void_p)(_destroy_capsule)
