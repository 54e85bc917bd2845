"""Calls of the operating system that fail, or end the process, at a chosen step."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CALLS = ("pread", "write", "lseek", "ftruncate", "fsync", "stat", "replace", "link", "unlink")


@contextmanager
def at_step(step: int, act: Callable[[], None]) -> Iterator[list[str]]:
    """`act` instead of the call number `step`, from 0; gives the list of the calls made."""
    calls: list[str] = []
    real = {name: getattr(os, name) for name in CALLS}

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            calls.append(name)
            if len(calls) - 1 == step:
                act()
            return real[name](*arguments, **more)

        return call

    for name in CALLS:
        setattr(os, name, wrapped(name))
    try:
        yield calls
    finally:
        for name in CALLS:
            setattr(os, name, real[name])


def raises(code: int) -> Callable[[], None]:
    def act() -> None:
        raise OSError(code, os.strerror(code))

    return act


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def died(work: Callable[[], object], step: int) -> bool:
    """Whether a process that does the work is killed at this step, and not before its end."""
    child = os.fork()
    if child == 0:
        try:
            with at_step(step, kill):
                work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])
