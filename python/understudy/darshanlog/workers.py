"""Processes that work for this one and end with it, also when it is killed.

Each has one connection. The next task comes over it when the last is done, so that anything that
can be read meanwhile is its end: this process stops, or is no more.
"""

import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from understudy.launch import SIGNALS, signals_go_to
from understudy.studies import packages

WAIT_S = 0.5  # until a signal is looked for

Task = TypeVar("Task")
Done = TypeVar("Done")
Check = Callable[[], None]


class Stopped(Exception):
    """A signal asked this process to end, or the one that it works for has ended."""


class Stop:
    """The signal that arrived, or 0; `check` raises Stopped after one."""

    number = 0

    def check(self) -> None:
        if self.number:
            raise Stopped(signal.Signals(self.number).name)


@contextmanager
def stopping() -> Iterator[Stop]:
    """Signals that end a process do so where it calls `check`, and not elsewhere. Those that are
    ignored stay so, as of nohup."""
    stop = Stop()

    def take(number: int, _: Any) -> None:
        stop.number = stop.number or number

    with signals_go_to(take):
        yield stop


def each(
    tasks: Sequence[Task], do: Callable[[Task, Check], Done], jobs: int, stop: Stop
) -> Iterator[tuple[int, Done | None]]:
    """Index and result of each task, as they end; None where its process was killed.

    `do(task, check)` runs in `jobs` processes, and calls `check` now and then. All have ended when
    this ends. Raises Stopped.
    """
    resource_tracker.ensure_running()  # unblocks signals
    left = iter(enumerate(tasks))
    busy: dict[Connection, int] = {}
    started: dict[Connection, BaseProcess] = {}

    def give(link: Connection) -> None:
        index, task = next(left, (-1, None))
        if index < 0:
            link.close()
            return
        busy[link] = index
        with suppress(OSError):  # it has been killed: read below
            link.send(task)

    def start() -> None:
        link, process = _start(do)
        started[link] = process
        give(link)

    try:
        for _ in range(min(jobs, len(tasks))):
            start()
        while busy:
            for link in wait(list(busy), WAIT_S):
                assert isinstance(link, Connection)
                index, done = busy.pop(link), None
                try:
                    done = link.recv()
                except (EOFError, OSError):
                    link.close()
                    start()
                else:
                    give(link)
                yield index, done
            stop.check()
    finally:
        for link in started:
            link.close()
        for process in started.values():
            process.join()


def _start(do: Callable[[Any, Check], Any]) -> tuple[Connection, BaseProcess]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, pickle.dumps(do)))
    former = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until it ignores them
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
        theirs.close()
    return ours, process


def _work(link: Connection, pickled: bytes) -> None:
    """A batch system signals all processes: this one ends with the one that it works for."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    packages()  # what follows may be of a study, which is not on the module path
    do: Callable[[Any, Check], Any] = pickle.loads(pickled)

    def check() -> None:
        if link.poll():
            raise Stopped

    while True:
        try:
            task = link.recv()
        except (EOFError, OSError):
            return
        try:
            done = do(task, check)
        except Stopped:
            return
        try:
            link.send(done)
        except OSError:
            return
