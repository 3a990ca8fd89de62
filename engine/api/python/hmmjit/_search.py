"""Searches in this process."""
from __future__ import annotations

import atexit
import contextlib
import inspect
import os
import queue
import stat
import threading
from ctypes import byref
from typing import (TYPE_CHECKING, Any, Callable, Collection, ContextManager, Dict, Iterable, Iterator, List, Mapping,
                    Optional, Set, Tuple, TypeVar)

from . import _binding as _b
from ._common import INT32, Handover, PathLike, UsageError, ending, integer, real
from ._inputs import Models, ModelsSource, Targets, TargetsSource, files_of
from ._interface import OPTIONS, SearchOptions
from ._options import make_options
from ._reports import Report
from ._results import Result, Results

if TYPE_CHECKING:
    from typing_extensions import Unpack

    OnProgress = Callable[[Dict[str, int]], Any]
    OnWarning = Callable[[_b.Error], Any]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Shown(str):
    """An annotation shown without quotes."""

    __repr__ = str.__str__


def shows_options(function: _Function, without: Iterable[str] = (), **defaults: float) -> _Function:
    """Gives a function with search options the signature for editors and help(). `without`: options that it refuses.
    `defaults`: those that differ from hmmsearch's."""
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=_Shown(p.annotation) if isinstance(p.annotation, str) else p.annotation)
                  for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    for name, (_, default) in OPTIONS.items():
        if name in without:
            continue
        kind: Any = SearchOptions.__annotations__[name]
        kind = getattr(kind, "__forward_arg__", kind)
        if default is not None and kind.startswith("Optional["):
            kind = kind[len("Optional["):-1]
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name, default),
                                            annotation=_Shown(kind)))
    result = signature.return_annotation
    setattr(function, "__signature__", signature.replace(
        parameters=parameters, return_annotation=_Shown(result) if isinstance(result, str) else result))
    return function


class _Workers:
    """A thread pool that keeps at most MOST_IDLE idle threads.

    A Run's thread is idle again before the call of its `_finished`: a caller that then submits more work reuses the
    thread.
    """

    MOST_IDLE = 2

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: List[queue.SimpleQueue[Run]] = []
        self._running: Set[Run] = set()
        self._calls: Set[object] = set()
        self._ended = threading.Condition(self._lock)
        self._ender: Optional[int] = None
        self._serving = threading.local()

    def _begin(self, work: Any, works: Set[Any]) -> None:
        """Adds work for end() to wait for."""
        with self._lock:
            # Work that a callback begins ends before the callback's search.
            begins = self._ender in (None, threading.get_ident()) or hasattr(self._serving, "run")
            if begins:
                works.add(work)
        if not begins:
            raise _b.Cancelled("the interpreter is ending")

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """A short call of the library that calls Python in the thread of the caller."""
        token = object()
        try:
            self._begin(token, self._calls)
            yield
        finally:
            with self._lock:
                self._calls.discard(token)
                self._ended.notify_all()

    def run(self, run: Run) -> None:
        self._begin(run, self._running)
        with self._lock:
            waiting = self._idle.pop() if self._idle else None
        if waiting is None:
            waiting = queue.SimpleQueue()
            try:
                threading.Thread(target=self._serve, args=(waiting,), daemon=True, name="hmmjit search").start()
            except BaseException as refusal:
                self._running.discard(run)
                run.done.set()
                if not isinstance(refusal, RuntimeError):  # Ctrl-C
                    raise
                message, remedy = f"a thread cannot be started: {refusal}", "raise the limit on processes (ulimit -u)"
                raise _b.ResourcesError(f"{message}; {remedy}", message, "", remedy) from refusal
        waiting.put(run)

    def _serve(self, waiting: queue.SimpleQueue[Run]) -> None:
        stays = True
        while stays:
            run: Optional[Run] = waiting.get()
            assert run is not None
            self._serving.run = run
            run._run()
            del self._serving.run
            with self._lock:
                stays = len(self._idle) < self.MOST_IDLE
                if stays:
                    self._idle.append(waiting)
            run._finished()
            self._running.discard(run)  # only now: forked children must not wait for it
            run = None  # an idle thread must keep nothing alive

    def end(self) -> None:
        """Ends all work: a library thread that calls Python after the interpreter's end aborts the process.
        Afterwards, only the calling thread, which runs the exit handlers, and callbacks of its work can begin
        work."""
        ending.set()
        with self._lock:
            self._ender = threading.get_ident()
            running = list(self._running)
        for run in running:
            run.cancel()
        for run in running:
            run.done.wait()
        with self._lock:
            self._ended.wait_for(lambda: not self._calls)
        ending.clear()  # other exit handlers may search


_workers = _Workers()


def calling() -> ContextManager[None]:
    return _workers.call()


def _forget_workers() -> None:
    global _workers
    for run in _workers._running:  # a forked child lacks the threads
        if run.done.is_set():
            continue
        run.failure = UsageError("this work belongs to the parent process; begin it anew in the child")
        run.done = threading.Event()  # the old one may be locked
        run._finished()
    _workers = _Workers()


os.register_at_fork(after_in_child=_forget_workers)
atexit.register(lambda: _workers.end())


class Run:
    """Work of the library in a worker thread: the caller can handle signals meanwhile.

    `work` is called with the callbacks. `on_result` is called with the pointer of a result that lives until it
    returns. `on_done` is called from the worker once all is done, before `done` is set.
    """

    def __init__(self, work: Callable[[Any], Any], on_result: Optional[Callable[[Any], Any]] = None,
                 on_progress: Optional[OnProgress] = None, interval: float = 0.25,
                 on_warning: Optional[OnWarning] = None, on_done: Optional[Callable[[], Any]] = None) -> None:
        self.cancellation = _b.Handle("cancellation", _b.cancellation_create)
        self.failure: Optional[BaseException] = None
        self.value: Any = None
        callbacks = _b.Callbacks(cancellation=self.cancellation.pointer,
                                 interval_ms=int(min(INT32, max(1, real("interval", interval) * 1000))))
        if on_result is not None:
            callbacks.result = _b.ResultCallback(self._guarded(on_result))
        if on_progress is not None:
            callbacks.progress = _b.ProgressCallback(self._guarded(lambda p: self._progress(on_progress, p)))
        if on_warning is not None:
            warn = self._guarded(lambda pointer: on_warning(_b.exception(pointer)) and None)

            def warning(context: Any, pointer: Any) -> None:
                if warn(context, pointer) != 0:
                    self.cancel()

            callbacks.warning = _b.WarningCallback(warning)
        self._work: Optional[Callable[[Any], Any]] = work
        self._callbacks: Any = callbacks
        self._on_done = on_done
        self.done = threading.Event()
        _workers.run(self)

    def _guarded(self, work: Callable[[Any], Any]) -> Callable[[Any, Any], int]:
        def call(_: Any, argument: Any) -> int:
            try:
                return 1 if work(argument) is False else 0
            except BaseException as error:  # raised again in the caller
                self.failure = self.failure or error
                return 1

        return call

    @staticmethod
    def _progress(on_progress: OnProgress, pointer: Any) -> Any:
        progress = _b.Progress.from_address(pointer)
        return on_progress({name: getattr(progress, name) for name, *_ in _b.Progress._fields_[1:-1]})

    def _run(self) -> None:
        assert self._work is not None and self._callbacks is not None
        try:
            self.value = self._work(byref(self._callbacks))
        except BaseException as error:
            # The traceback would hold this frame, and with it the callbacks in a place where the garbage
            # collector does not look (byref): nothing of this search would ever be freed.
            self.failure = self.failure or error.with_traceback(None)
        finally:
            self._work = self._callbacks = None

    def _finished(self) -> None:
        try:
            if self._on_done is not None:
                self._on_done()
                self._on_done = None
        finally:
            self.done.set()

    def cancel(self) -> None:
        _b.cancellation_cancel(self.cancellation.pointer)

    def wait(self) -> Any:
        """Waits for the work and returns its value. Cancels the work when interrupted (Ctrl-C)."""
        try:
            while not self.done.wait(0.2):
                pass
        except BaseException:
            self.cancel()
            self.done.wait()
            raise
        if self.failure is not None:
            try:
                if isinstance(self.failure, (StopIteration, StopAsyncIteration)):  # would end the loop of the caller
                    raise RuntimeError(f"a callback raised {type(self.failure).__name__}") from self.failure
                raise self.failure
            finally:
                self.failure = None  # its traceback holds this frame, and with it the inputs
        return self.value


def statistics_of(results: _b.Handle) -> Dict[str, Any]:
    out = _b.SearchStatistics()
    _b.results_statistics(results.pointer, byref(out))
    values: Dict[str, Any] = {n: getattr(out, n) for n, *_ in out._fields_ if n not in ("size", "reserved", "counts")}
    for name in ("backend", "device", "json"):
        values[name] = _b.text(values[name])
    for name in ("streamed", "spooled"):
        values[name] = bool(values[name])
    values["counts"] = {n: getattr(out.counts, n) for n, *_ in _b.FilterCounts._fields_}
    return values


def results_of(handle: _b.Handle, options: Any) -> Results:
    """The collected results of a search."""
    count = _b.results_count(handle.pointer)
    return Results([Result(_b.results_get(handle.pointer, i)) for i in range(count)], statistics_of(handle), options)


def _inputs(models: ModelsSource, targets: TargetsSource) -> Tuple[Models, Targets]:
    return (models if isinstance(models, Models) else Models(models),
            targets if isinstance(targets, Targets) else Targets(targets))


def _searching(models: ModelsSource, targets: TargetsSource, options: Any,
               search: Any = _b.search) -> Callable[[Any], _b.Handle]:
    queries, sequences = _inputs(models, targets)
    now = queries._handle  # later changes have no effect
    return lambda callbacks: _b.Handle("results", search, now, sequences._handle, byref(options), callbacks)


@shows_options
def search(models: ModelsSource, targets: TargetsSource, *, progress: Optional[OnProgress] = None,
           interval: float = 0.25, warning: Optional[OnWarning] = None, **options: Unpack[SearchOptions]) -> Results:
    """Searches every model against every target; returns Results.

    `models`, `targets`: Models and Targets, or arguments of their constructors.

    `options`: see SearchOptions. Concurrent searches do not share threads or memory: divide both with `threads` and
    `memory`.

    `progress` is called every `interval` seconds, from another thread, with a dict of counters. If it returns False,
    the search raises Cancelled. Ctrl-C cancels the search too. `warning` is called, from another thread, with an
    Error for each problem that does not stop the search: a lost GPU, an unusable cache folder. An exception in these
    functions ends the search, which raises it.

    `statistics` of the Results: a dict. Seconds of stages (read, setup, ssv, msv, bias, viterbi,
    scoring, report) are CPU time, summed over threads; others are wall time. "json" is the text of `hmmjit search
    --stats`; "backend" and "device" name the processors of the filters, and the reason if no GPU was used.
    """
    out = make_options(options)
    run = Run(_searching(models, targets, out), None, progress, interval, warning)
    return results_of(run.wait(), out)


@shows_options
def scan(sequences: TargetsSource, models: ModelsSource, *, progress: Optional[OnProgress] = None,
         interval: float = 0.25, warning: Optional[OnWarning] = None, **options: Unpack[SearchOptions]) -> Results:
    """Searches every sequence with every model, as hmmscan does. Returns one Result per sequence; its hits are
    models. Unless set, Z is the number of models. Arguments: see search. `cut_missing` can only be "error": a model
    without cutoffs is an error once a sequence passes its bias filter. Reads a path of models several times for many
    sequences.

        for sequence in hmmjit.scan("queries.fasta", "Pfam.hmm", cutoffs="gathering"):
            print(sequence.name, [family.name for family in sequence.reported])
    """
    out = make_options(options, "scan")
    run = Run(_searching(models, sequences, out, _b.scan), None, progress, interval, warning)
    return results_of(run.wait(), out)


async def in_loop(start: Callable[[Callable[[], Any]], Run]) -> Any:
    """Awaits the Run that `start` returns. `start` gets a function to call at the end. Cancelling the task cancels
    the Run."""
    import asyncio  # takes a third of the time of importing hmmjit

    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def tell() -> None:
        try:
            loop.call_soon_threadsafe(done.set)
        except RuntimeError:  # the loop is closed
            pass

    run = start(tell)
    try:
        await done.wait()
    except asyncio.CancelledError:
        run.cancel()
        await done.wait()
        raise
    finally:
        run.cancel()  # also if a closed loop abandons the coroutine
    return run.wait()


@shows_options
async def search_async(models: ModelsSource, targets: TargetsSource, *, progress: Optional[OnProgress] = None,
                       interval: float = 0.25, warning: Optional[OnWarning] = None,
                       **options: Unpack[SearchOptions]) -> Results:
    """As search, for asyncio: other tasks run meanwhile. Cancelling the awaiting task cancels the search."""
    out = make_options(options, "search_async")
    work = _searching(models, targets, out)
    return results_of(await in_loop(lambda tell: Run(work, None, progress, interval, warning, tell)), out)


class SearchIterator:
    """Results of a running search: an iterator of Result, also asynchronous, and a context manager.

    `statistics`: as in Results, after the last result; None before. close() cancels the search. One thread at a time.
    """

    statistics: Optional[Dict[str, Any]]

    def __init__(self, models: ModelsSource, targets: TargetsSource, options: Any, buffer: int,
                 progress: Optional[OnProgress], interval: float, warning: Optional[OnWarning]) -> None:
        self.statistics = None
        waiting = self._waiting = Handover[Result](max(1, integer("buffer", buffer, 0, INT32)))
        # The search's thread must not refer to this object, which would then never be freed.
        self._run = Run(_searching(models, targets, options), lambda pointer: waiting.put(Result(pointer)), progress,
                        interval, warning, waiting.end)

    def __iter__(self) -> SearchIterator:
        return self

    def __next__(self) -> Result:
        try:
            if not self._waiting.closed.is_set():
                result = self._waiting.get()
                if result is not None:
                    return result
            if not self._waiting.closed.is_set():
                self.statistics = statistics_of(self._run.wait())
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopIteration

    def __aiter__(self) -> SearchIterator:
        return self

    async def __anext__(self) -> Result:
        import asyncio

        try:
            result = await asyncio.get_running_loop().run_in_executor(None, next, self, None)
        except asyncio.CancelledError:
            await self._aclose()
            raise
        if result is None:
            raise StopAsyncIteration
        return result

    def close(self) -> None:
        """Cancels the search if it runs, and waits for its end."""
        self._cancel()
        self._run.done.wait()

    def _cancel(self) -> None:
        self._waiting.closed.set()
        self._run.cancel()

    async def _aclose(self) -> None:
        import asyncio

        self._cancel()
        await asyncio.get_running_loop().run_in_executor(None, self._run.done.wait)

    def __enter__(self) -> SearchIterator:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    async def __aenter__(self) -> SearchIterator:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self._aclose()

    def __del__(self) -> None:
        if hasattr(self, "_run"):  # without waiting: the interpreter may be ending
            self._cancel()


@shows_options
def search_iter(models: ModelsSource, targets: TargetsSource, *, buffer: int = 64,
                progress: Optional[OnProgress] = None, interval: float = 0.25,
                warning: Optional[OnWarning] = None, **options: Unpack[SearchOptions]) -> SearchIterator:
    """As search, but returns a SearchIterator, which yields each Result as soon as it and all earlier ones are
    ready: for libraries whose results do not fit into memory. At most `buffer` results wait. Works with `for` and
    `async for`."""
    return SearchIterator(models, targets, make_options(options, "search_iter"), buffer, progress, interval, warning)


def _file_of(path: PathLike) -> Any:
    """Equal for all paths of a file. Devices and pipes may be named several times."""
    try:
        info = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    shared = os.fsdecode(path).startswith("/dev/") or not stat.S_ISREG(info.st_mode)
    return object() if shared else (info.st_dev, info.st_ino)


def refuse_inputs(what: str, path: PathLike, inputs: Iterable[PathLike]) -> None:
    """UsageError if an output is one of the files."""
    if _file_of(path) in map(_file_of, inputs):
        raise UsageError(f"an input is the same file: {what} {os.fspath(path)}; give the output another")


class FileReports:
    """Several outputs, written as results arrive. No file may be one of `inputs`."""

    def __init__(self, files: Mapping[str, PathLike], search: Any, settings: Optional[Mapping[str, Any]],
                 inputs: Collection[PathLike], header: bool = True) -> None:
        if not isinstance(files, Mapping):
            raise TypeError(f"files takes a dict of kinds of Report and paths, not {files!r}")
        self._reports = [Report(kind, path, search=search, **(settings or {})) for kind, path in files.items()]
        seen: Dict[Any, str] = {}
        for made, kind in zip(self._reports, files):
            refuse_inputs(kind, files[kind], inputs)
            other = seen.setdefault(_file_of(files[kind]), kind)
            if other != kind:
                raise UsageError(f"{other} writes the same file: {kind} {os.fspath(files[kind])}; give each output a "
                                 "file of its own")
            if header and kind == "main":
                made.add_header()

    def write(self, pointer: Any) -> None:
        for made in self._reports:
            _b.report_add(made._handle.pointer, pointer)

    def complete(self) -> None:
        for made in self._reports:
            made.complete()


@shows_options
def search_to_files(models: ModelsSource, targets: TargetsSource, files: Mapping[str, PathLike], *,
                    progress: Optional[OnProgress] = None, interval: float = 0.25,
                    warning: Optional[OnWarning] = None, report: Optional[Mapping[str, Any]] = None,
                    **options: Unpack[SearchOptions]) -> Dict[str, Any]:
    """As search, but writes results to files as they arrive and keeps none; returns the statistics.

    `files`: a dict of kinds of Report and paths, such as {"tblout": "hits.tbl", "json": "hits.json"}; the
    main report has its header. The files appear at the end of the search, one after the other. `report`: a dict of
    arguments of Report. Options: as in search.
    """
    out = make_options(options, "search_to_files")
    inputs = _inputs(models, targets)
    # With pressed models, which replace the file, and indexes.
    paths = [path + suffix for path in files_of(inputs[0])
             for suffix in ("", ".h3m", ".h3f", ".h3p", ".h3i", ".hjidx", ".h3m.hjidx")]
    paths += files_of(inputs[1])
    reports = FileReports(files, out, report, paths)
    run = Run(_searching(*inputs, out), reports.write, progress, interval, warning)
    handle = run.wait()
    reports.complete()
    return statistics_of(handle)
