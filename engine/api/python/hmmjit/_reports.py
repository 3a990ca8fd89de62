"""The program's outputs, made from results."""
from __future__ import annotations

import ctypes
from ctypes import byref
from typing import TYPE_CHECKING, Any, Iterable, Optional, Union

from . import _binding as _b
from ._common import INT32, UINT64, PathLike, choose, integer
from ._results import Result
from ._options import make_options

if TYPE_CHECKING:
    from ._build import IterativeSearch

REPORTS = {"main": 0, "tblout": 1, "domtblout": 2, "pfamtblout": 3, "stockholm": 4, "tsv": 5, "json": 6,
           "a3m": 7, "scan_tblout": 8, "scan_domtblout": 9, "html": 10, "dfamtblout": 11}


def write_file(path: PathLike, pieces: Iterable[bytes]) -> None:
    """Writes a file, which appears once complete."""
    file = Report("stockholm", path)
    for piece in pieces:
        file.add_text(piece)
    file.complete()


class Report:
    """One output, made from results in model order.

    `kind`: "main", "tblout", "domtblout", "pfamtblout", "stockholm", "tsv", "json", "a3m" (this one and
    "stockholm" from results with alignments), "html" (one page), and "scan_tblout", "scan_domtblout":
    hmmscan's tables (set the search's Z to the number of models). Of nhmmer's results: "main", "tblout" and
    "dfamtblout" as nhmmer writes them, "stockholm", "tsv", "json", "a3m", "html". `path`: a file, which appears once
    complete; None: complete() returns the text.

    `text_width`: of the main report, 120 columns or more, 0 for no limit. `title`, `top`: title of the page, and
    number of targets on it (0: all). `query_file`, `target_file`, `settings`, `date` appear in comment lines.
    `search`: a dict with the options of search(). One thread at a time.
    """

    def __init__(self, kind: str = "tblout", path: Optional[PathLike] = None, *, search: Any = None,
                 prefer_accession: bool = False, alignments: bool = True, text_width: int = 120,
                 title: Optional[str] = None, top: int = 0, query_file: Union[str, bytes] = "",
                 target_file: Union[str, bytes] = "", settings: str = "", date: str = "") -> None:
        self._search = search if isinstance(search, _b.SearchOptions) else make_options(search or {}, "Report")
        self._options = _b.ReportOptions(
            prefer_accession=bool(prefer_accession), alignments=bool(alignments),
            text_width=integer("text_width", text_width, 0, INT32), search=ctypes.addressof(self._search),
            page_title=_b.encode(title), page_targets=integer("top", top, 0, UINT64))
        self._run = _b.RunInfo(query_file=_b.encode(query_file), target_file=_b.encode(target_file),
                               settings=_b.encode(settings), date=_b.encode(date))
        self._path = path
        self._handle = _b.Handle("report", _b.report_create, choose("report", kind, REPORTS),
                                 None if path is None else _b.encode(path), byref(self._options))

    def add(self, result: Result) -> None:
        """Adds the next model's Result."""
        if not isinstance(result, Result):
            raise TypeError(f"no Result: {type(result).__name__}")
        _b.report_add(self._handle.pointer, result._handle.pointer)

    def add_rounds(self, search: IterativeSearch, query: int = 0) -> None:
        """Adds a query whose rounds are done, as jackhmmer reports it: all rounds to the main report, the last one to
        other kinds."""
        _b.report_add_iteration(self._handle.pointer, search._handle.pointer,
                                integer("query", query, 0, UINT64))

    def add_text(self, text: Union[str, bytes]) -> None:
        """Adds text here to the output."""
        _b.report_add_text(self._handle.pointer, _b.encode(text))

    def add_header(self) -> None:
        """Adds the first lines of hmmsearch's main report."""
        header = _b.Handle("text", _b.main_report_header, byref(self._run), byref(self._options))
        self.add_text(_b.take_text(header))

    def complete(self) -> Optional[bytes]:
        """Writes the closing lines; then gives the file its name, or returns the text as bytes."""
        _b.report_complete(self._handle.pointer, byref(self._run))
        if self._path is None:
            return _b.take_text(_b.Handle("text", _b.report_take_text, self._handle.pointer))
        return None
