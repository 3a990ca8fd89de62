"""Targets for repeated searches."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional

from . import _binding as _b
from ._build import jackhmmer, phmmer
from ._inputs import ModelsSource, Targets, TargetsSource, files_of
from ._options import make_options
from ._results import Results
from ._search import SearchIterator, scan, search, search_iter

if TYPE_CHECKING:
    from ._interface import SearchOptions
    from typing_extensions import Unpack


class Session(Targets):
    """Targets, kept from one search to the next with everything that searches of them need::

        session = hmmjit.Session("proteome.hjdb", device="gpu")
        results = session.search(models)
        for last in session.jackhmmer(queries, max_iterations=3): ...

    Reads sequences now and keeps them in memory; maps a target database (.hjdb), so its file must not change in
    place. The first search with GPUs starts them. Kernels and, while there is room, targets stay on the GPUs until
    the Session is freed. Any number of threads may search. Searches with equal settings share a run; other runs take
    turns on the GPUs, in the order of calls.

    A Session is a Targets, accepted by every function. Its methods are those functions, with `options` as defaults.
    Results equal those without a Session. A pickle holds only the targets.
    """

    def __init__(self, targets: TargetsSource, alphabet: Optional[str] = None, format: Optional[str] = None,
                 **options: Unpack[SearchOptions]) -> None:
        make_options(options, "Session")  # reports errors now
        self._options = options
        given = targets if isinstance(targets, Targets) else Targets(targets, alphabet, format)
        self._alphabet = given._alphabet
        self._files = files_of(given)
        self._handle = _b.Handle("targets", _b.targets_keep, given._handle.pointer, self._alphabet)

    def search(self, models: ModelsSource, **arguments: Any) -> Results:
        """hmmjit.search of these targets. Inside the loop over a search_iter with GPUs, use another Session, or
        collect all results first: see search_iter."""
        return search(models, self, **{**self._options, **arguments})

    def search_iter(self, models: ModelsSource, **arguments: Any) -> SearchIterator:
        """hmmjit.search_iter of these targets. With GPUs, a search of the same Session inside the loop over the
        results may deadlock: it waits for this search, which waits for the loop once more than `buffer` results are
        ready. Use another Session, or collect all results first."""
        return search_iter(models, self, **{**self._options, **arguments})

    def scan(self, models: ModelsSource, **arguments: Any) -> Results:
        """hmmjit.scan of these sequences."""
        return scan(self, models, **{**self._options, **arguments})

    def phmmer(self, queries: TargetsSource, **arguments: Any) -> Results:
        """hmmjit.phmmer of these targets."""
        return phmmer(queries, self, **{**self._options, **arguments})

    def jackhmmer(self, queries: Any, **arguments: Any) -> Iterator[Any]:
        """hmmjit.jackhmmer of these targets."""
        return jackhmmer(queries, self, **{**self._options, **arguments})

    def __repr__(self) -> str:
        return f"<hmmjit.Session of {super().__repr__()}>"
