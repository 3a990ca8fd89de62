"""Shared by the package's modules: choices, numbers, paths."""
from __future__ import annotations

import difflib
import io
import os
import queue
import re
import threading
from typing import Any, Generic, Iterable, Mapping, Optional, TypeVar, Union

from ._binding import Cancelled, UsageError as UsageError

PathLike = Union[str, "os.PathLike[str]"]
Bytes = Union[bytes, bytearray, memoryview]

ALPHABETS = {"amino": 0, "dna": 1, "rna": 2}
INT32, INT64, UINT32, UINT64 = 2**31 - 1, 2**63 - 1, 2**32 - 1, 2**64 - 1

_Key = TypeVar("_Key")
T = TypeVar("T")


def choose(what: str, name: Any, choices: Mapping[Any, int]) -> int:
    """The number of a named choice."""
    key = name.lower() if isinstance(name, str) else name
    try:
        return choices[key]
    except (KeyError, TypeError):
        raise UsageError(f"no {what} {name!r}: " + ", ".join(repr(c) for c in choices)) from None


def integer(name: str, value: Any, low: int, high: int) -> int:
    """An integer within bounds: ctypes would truncate others silently."""
    try:
        number = int(value.__index__())
    except (AttributeError, TypeError):
        raise UsageError(f"{name} takes an integer, not {value!r}") from None
    if not low <= number <= high:
        raise UsageError(f"{name} takes {low} to {high}, not {number}")
    return number


def real(name: str, value: Any, *, positive: bool = False) -> float:
    """A number; `positive`: above 0."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name} takes a number, not {value!r}") from None
    if number != number or (positive and number <= 0):
        raise UsageError(f"{name} takes a number{' above 0' if positive else ''}, not {value!r}")
    return number


_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def size_of(name: str, value: Any) -> int:
    """Bytes: an integer, or text such as "400M" or "2G", as in the program's options."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", value, re.IGNORECASE | re.ASCII)
        if match is None:
            raise UsageError(f"{name} takes bytes, or a size such as '400M' or '2G', not {value!r}")
        value = int(float(match[1]) * 2**_UNITS[match[2].upper()])
    return integer(name, value, 0, UINT64)


_OTHER_NAMES = {"evalue": "E", "e_value": "E", "cpu": "threads", "cpus": "threads", "n_threads": "threads",
                "mem": "memory", "ga": "cutoffs", "cut_ga": "cutoffs", "bit_cutoffs": "cutoffs",
                "bitscore": "T", "score": "T", "nobias": "bias_filter", "nonull2": "null2", "noali": "alignments",
                "max_sensitivity": "max", "incevalue": "incE", "domevalue": "domE", "gpu": "device"}


def unknown_option(function: str, name: str, known: Iterable[str]) -> TypeError:
    """The error for an unknown option, with the nearest known one."""
    names = list(known)
    near = [_OTHER_NAMES[name.lower()]] if _OTHER_NAMES.get(name.lower()) in names else []
    lowered = {n.lower(): n for n in names}
    near = near or [lowered[n] for n in difflib.get_close_matches(name.lower(), list(lowered), 1)]
    return TypeError(f"{function} has no option {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def is_path(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike))


def contents(source: Any) -> Any:
    """The bytes of an open Python file; other objects unchanged."""
    # Wrappers of files, such as tempfile's, are no IOBase; PyHMMER's files have read() but yield objects.
    if isinstance(source, io.IOBase) or (hasattr(source, "read") and hasattr(source, "readline")):
        read = getattr(source, "read")()
        return read.encode("utf-8", "surrogateescape") if isinstance(read, str) else read
    return source


#: Set while the end of the interpreter stops work of the library.
ending = threading.Event()


class Handover(Generic[T]):
    """Hands things from a thread of the library to a consumer. At most `most` wait."""

    def __init__(self, most: int) -> None:
        self._things: queue.SimpleQueue[Optional[T]] = queue.SimpleQueue()
        self._room = threading.Semaphore(most)
        self.closed = threading.Event()

    def put(self, thing: T) -> bool:
        """Waits for room. False if `closed` is set: nobody waits for an error, whose traceback would keep the search
        alive. Raises Cancelled if `ending` is set."""
        while not self.closed.is_set():
            if ending.is_set():
                raise Cancelled("the interpreter is ending")
            if self._room.acquire(timeout=0.1):
                self._things.put(thing)
                return True
        return False

    def end(self) -> None:
        """Nothing follows."""
        self._things.put(None)

    def get(self) -> Optional[T]:
        """The next thing, or None after the last."""
        thing = self._things.get()
        if thing is None:
            self._things.put(None)  # for the next call, perhaps of another thread
        self._room.release()
        return thing
