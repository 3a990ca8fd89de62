"""Targets that are searched again and again."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional

from . import _binding as _b
from ._build import jackhmmer, phmmer
from ._inputs import ModelsSource, Targets, TargetsSource
from ._options import make_options
from ._results import Results
from ._search import SearchIterator, scan, search, search_iter

if TYPE_CHECKING:
    from ._interface import SearchOptions
    from typing_extensions import Unpack


class Session(Targets):
    """Targets, and what searches of them need, kept from one search to the next::

        session = hmmjit.Session("proteome.hjdb", device="gpu")
        results = session.search(models)
        for last in session.jackhmmer(queries, max_iterations=3): ...

    Sequences are read now and stay in memory; a target database (.hjdb) is mapped, so its file must not be changed in
    place. The first search that uses GPUs starts them. Kernels and, while there is room, targets stay on them until
    the Session is freed. Any number of threads may search. Searches with the same settings share a run; other
    runs take turns on the GPUs, in the order of their calls.

    A Session is a Targets, which every function takes. Its own methods are those functions, with `options` where a
    call gives none. Results are the same as without a Session. A pickle has the targets alone.
    """

    def __init__(self, targets: TargetsSource, alphabet: str = "amino", format: Optional[str] = None,
                 **options: Unpack[SearchOptions]) -> None:
        make_options(options, "Session")  # reports errors now
        self._options = options
        given = targets if isinstance(targets, Targets) else Targets(targets, alphabet, format)
        self._alphabet = given._alphabet
        self._handle = _b.Handle("targets", _b.targets_keep, given._handle.pointer, self._alphabet)

    def search(self, models: ModelsSource, **arguments: Any) -> Results:
        """hmmjit.search of these targets. Inside the loop over a search_iter that uses GPUs it needs a Session of its own,
        or all results first: see search_iter."""
        return search(models, self, **{**self._options, **arguments})

    def search_iter(self, models: ModelsSource, **arguments: Any) -> SearchIterator:
        """hmmjit.search_iter of these targets. With GPUs, a search of the same Session from the loop over the results
        waits for this search, which waits for the loop once more than `buffer` results are ready: take a Session of its
        own for it, or all results first."""
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
