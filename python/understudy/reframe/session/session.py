"""Ends a session that cannot work, with one message and before any test, or that did no work.

ReFrame notices a missing batch system per test in the middle of the session, only warns of a
variable that no check has, and passes a session in which nothing ran. Checks ask here before any
of them runs, see `reframe_internals`.
"""

import argparse
import atexit
import logging
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from reframe.core.exceptions import ReframeFatalError
from reframe.core.logging import getlogger
from reframe.core.runtime import runtime

from understudy import producers
from understudy.contracts.measurement import Measurement
from understudy.contracts.run import Identity, Place
from understudy.errors import UnderstudyError, one_line, refuse_exit
from understudy.records import store
from understudy.reframe import reframe_internals
from understudy.reframe.session import case_size_vs_memory
from understudy.reframe.session.job_failures import LONGEST_REASON
from understudy.reframe.session.live import Live

FAILURE = 1
DRY = "--dry-run"
ACCEPT = "accept"  # the mode in which storage is measured
UNKNOWN_HOST = "generic"  # ReFrame's own system, for a host that no configuration names


@cache
def identifier() -> str:
    """One for each run of ReFrame, the same for all of its checks: the UUID that ReFrame prints
    and keeps in its database. A process without one, such as a test, has one of its own."""
    return reframe_internals.session_uuid() or str(uuid4())


class _Progress:
    """How far the session has come."""

    ended = False  # with a message of ours
    began = False  # to run what was selected, be it nothing
    expected: int | None = None  # cases
    ran = 0  # cases
    aborted = False  # by a signal
    installing = False  # the programs, which began and has not ended well

    def __init__(self) -> None:
        self.skipped: list[str] = []  # why, for each case
        self.tags: set[str] = set()  # of these
        self.interrupted: dict[str, Any] = {}  # checks that were started and have not ended
        self.recorded: set[str] = set()  # cases of which a run has a record
        self.refused: dict[str, str] = {}  # why a test cannot run as asked, by its name
        self.live = Live()


_progress = _Progress()


def end(message: str) -> NoReturn:
    """End the session with one message. It must not be called in a stage of a test."""
    _progress.ended = True
    sys.exit(f"understudy: {message}")


@contextmanager
def exit_on_error() -> Iterator[None]:
    """An UnderstudyError ends the session with its message."""
    try:
        yield
    except UnderstudyError as error:
        end(str(error))


def refuse(check: Any, message: str) -> None:
    """End the session with a message once it is known that a test is selected: ReFrame creates
    those that are not, too."""
    _progress.refused[check.unique_name] = message


def note_installation(*, ended: bool) -> None:
    """The installation of the programs that all cases need begins, or ended well."""
    _progress.installing = not ended


def nothing_selected(cases: bool) -> str | None:
    """Why there is nothing to list or to run, if that is so; `cases`: whether any was selected."""
    if runtime().system.name == UNKNOWN_HOST:
        return "no system names this host; pass --system, such as --system=localhost"
    return None if cases else "no case was selected"


def discard_early_log() -> None:
    """Remove the log that ReFrame opens in the temporary directory before it reads any
    configuration, and leaves there. Called by ReFrame's configuration, which names its own."""
    for handler in getattr(getlogger().logger, "handlers", ()):
        path = Path(getattr(handler, "baseFilename", ""))
        if path.parent == Path(tempfile.gettempdir()) and re.fullmatch(r"rfm-\w+\.log", path.name):
            path.unlink(missing_ok=True)


def asks_to_run(arguments: Sequence[str]) -> bool:
    """True for arguments of ReFrame that run tests (-r, also as in -vr) and not dry."""
    run = any(a == "--run" or re.match(r"-[vqR]*r", a) for a in arguments)
    return run and DRY not in arguments


def expect_a_run() -> None:
    """Have this process fail if it is asked to run tests and none runs: without it, a misspelled
    name or a system without its programs passes. Called once, by ReFrame's configuration."""
    reframe_internals.around_loading(_refuse_exit)
    if asks_to_run(sys.argv[1:]) or DRY in sys.argv:
        reframe_internals.around_run(_note_begin, _note_end_of_run)
        atexit.register(_fail_without_a_run)


def _refuse_exit(filename: str, load: Callable[[], Any]) -> Any:
    """Our own checks end a session with a message."""
    try:
        return load()
    except SystemExit as error:
        if isinstance(error.code, str):
            raise
        with exit_on_error(), refuse_exit(filename):
            raise


def _note_begin(_: list[Any]) -> None:
    _progress.began = True


def _note_end_of_run(ended: reframe_internals.Ended) -> None:
    _progress.aborted = ended.aborted
    if DRY not in sys.argv:
        _keep_unrecorded(ended.failures)


def note_cases(cases: int) -> None:
    """So many cases are to run."""
    _progress.expected = cases


def _fail_without_a_run() -> None:
    dry = DRY in sys.argv
    if _progress.aborted and _progress.interrupted:
        told = ", ".join(_progress.interrupted)
        with _told():
            _keep(f"the session was ended while these ran: {told}")
    elif not dry:
        _keep_lost()
    if _progress.ran or _progress.ended or not _progress.began or (dry and _progress.skipped):
        return
    try:
        nothing = nothing_selected(bool(_progress.skipped) or _progress.installing)
    except ReframeFatalError:  # there is no such system, as ReFrame has said
        return
    if nothing is not None:
        told = reason = nothing
    elif _progress.skipped:
        reason = f"all {len(_progress.skipped)} cases were skipped"
        told = f"{reason}, for the reasons above"
        reason += f": {'; '.join(dict.fromkeys(_progress.skipped))}"
    else:
        told = reason = "the programs were not installed, for the reason above"
    print(f"understudy: nothing ran: {told}", file=sys.stderr, flush=True)
    if not dry and runtime().system.name != UNKNOWN_HOST:
        with _told():
            _keep(f"nothing ran: {reason}")
    sys.stdout.flush()
    logging.shutdown()
    os._exit(FAILURE)  # the status that sys.exit was given stands by now


def _keep_lost() -> None:
    """Records of runs whose job never told its end, as one that the batch system does not take:
    ReFrame has ended their cases, and says why."""
    for check in _progress.interrupted.values():
        if keep := getattr(check, "keep_lost_runs", None):
            with _told():
                keep(
                    "the case ended before its results could be read, as where a job cannot be "
                    "submitted; the output of ReFrame says why"
                )


def _keep_unrecorded(failures: Iterable[reframe_internals.Failure]) -> None:
    """Records of the cases that failed and have none of a run: they were not started, as where
    what they are built from failed, or their job died before its first run."""
    for failure in failures:
        check = failure.check
        if not hasattr(check, "keep_lost_runs"):
            continue
        if _case(check, failure.partition) in {*_progress.recorded, *_progress.interrupted}:
            continue
        system, _, partition = failure.partition.partition(":")
        place = Place(system=system, partition=partition, environment=failure.environment)
        with _told():
            _keep(_reason(failure), place, check.display_name, check.tags)


def _reason(failure: reframe_internals.Failure) -> str:
    """Why a case failed, in one line."""
    if failure.stage is None:
        return "not started: a case that it depends on failed, as the output of ReFrame says"
    return f"failed in its stage {failure.stage}: {one_line(str(failure.error))}"


@contextmanager
def _told() -> Iterator[None]:
    """An error is a message, at the end of a session."""
    try:
        yield
    except UnderstudyError as error:
        print(f"understudy: {error}", file=sys.stderr, flush=True)


def _keep(
    failure: str, place: Place | None = None, case: str | None = None, tags: Iterable[str] = ()
) -> None:
    """A record of a failed run: of a case of which there is no other, or of no case, of a session
    without any other or that was ended. The session counts."""
    run = producers.record(
        Path(producers.MEASUREMENT_FILE),
        place=place or Place(system=runtime().system.name),
        identity=Identity(
            session=identifier(),
            campaign=_value("campaign"),
            turn=_value("turn"),
            tags=tuple(sorted(tags or _progress.tags)),
            case=case,
        ),
        exit_status=None,
        failure=failure[:LONGEST_REASON],
        row={},
    )
    store.keep(run)


def _value(variable: str) -> str | None:
    """Value that -S gives a variable, of all checks or of one; None where it gives none."""
    words = (word.partition("=") for word in _given().setvar)
    values = [value for name, _, value in words if name.rpartition(".")[2] == variable]
    return values[-1] if values else None


def _name(check: Any) -> str:
    return _case(check, check.current_partition.fullname)


def _case(check: Any, partition: str) -> str:
    return f"{check.display_name} on {partition}"


def note_run(check: Any) -> None:
    """A case was started."""
    _progress.ran += 1
    _progress.interrupted[_name(check)] = check
    _progress.live.begin(_name(check))


def note_work() -> None:
    """Note work that is no case of a check, such as a job in which others run."""
    _progress.ran += 1


def note_end(check: Any) -> None:
    """A case that was started has ended, well or not."""
    _progress.interrupted.pop(_name(check), None)


def note_verdict(
    check: Any,
    moved_bytes: int,
    *,
    passed: bool,
    verdict: str,
    measured: Iterable[Measurement | None],
) -> None:
    """Note the result of a case that ended."""
    _progress.live.end(
        _name(check),
        moved_bytes,
        _progress.expected,
        passed=passed,
        verdict=verdict,
        campaign=check.campaign,
        turn=check.turn,
        measured=measured,
    )


def note_record(check: Any) -> None:
    """A run of a case has a record."""
    _progress.recorded.add(_name(check))


def note_left_out(check: Any) -> None:
    """A case that was started is skipped after all."""
    _progress.ran -= 1
    _progress.interrupted.pop(_name(check), None)


def note_skip(reason: str | None, tags: Iterable[str]) -> None:
    """A case was skipped."""
    _progress.skipped.append(reason or "no reason was given")
    _progress.tags.update(tags)
    _progress.live.skip()


def _given() -> argparse.Namespace:
    """Options of the command line for variables, parameters and the system."""
    return _parsed(tuple(sys.argv[1:]))


@cache
def _parsed(arguments: tuple[str, ...]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-S", "--setvar", action="append", default=[])
    parser.add_argument("-P", "--parameterize", action="append", default=[])
    parser.add_argument("--system")
    parser.add_argument("--mode")
    return parser.parse_known_args(arguments)[0]


@cache
def check_given(
    has_variable: Callable[[str | None, str], bool],
    has_parameter: Callable[[str | None, str], bool],
) -> None:
    """End the session if the command line sets a variable or a parameter that no check has. Called
    after all checks are loaded; both tell of a class (None: of any) whether it has a name."""
    given = _given()
    for option, words, knows, kind in (
        ("-S", given.setvar, has_variable, "variable"),
        ("-P", given.parameterize, has_parameter, "parameter"),
    ):
        for word in words:
            name, equals, value = word.partition("=")
            test, _, wanted = name.rpartition(".")
            if not equals or (kind == "parameter" and not value):
                end(f"{option} {word}: expected NAME=VALUE{',VALUE...' * (kind == 'parameter')}")
            if not knows(test or None, wanted):
                where = f"the check {test}" if test else "any selected check"
                end(f"{option} {word}: {wanted} is not a {kind} of {where}")


def check_selection(cases: Iterable[Any]) -> None:
    """End the session if a selected test was refused; warn of cases that are too small for the
    mode accept."""
    cases = list(cases)
    for case in cases:
        if message := _progress.refused.get(case.check.unique_name):
            end(message)
    if _given().mode == ACCEPT and (told := case_size_vs_memory.warning(cases)):
        print(f"understudy: {told}", file=sys.stderr, flush=True)


def again() -> str:
    """The definition of a shell function that gives ReFrame the system and the variables of this
    session: the jobs of --ci-generate are without them."""
    given = _given()
    words = ["--system", given.system] if given.system else []
    words += [word for variable in given.setvar for word in ("-S", variable)]
    return f'reframe() {{ command reframe {shlex.join(words)} "$@"; }}'
