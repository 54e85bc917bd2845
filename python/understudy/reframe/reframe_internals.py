# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""All that this project uses of ReFrame beyond its public interface.

ReFrame has no hooks for sessions: for what is selected, for the listing, for the beginning and the
end of a run. Each function here says what is missing upstream, what it does instead, and how to do
without it. `tests/test_reframe_internals.py` holds that no other module touches internals, and
runs the oldest and the newest ReFrame that pyproject.toml allows.
"""

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import reframe as rfm
from reframe.core.exceptions import ReframeError
from reframe.core.runtime import runtime
from reframe.core.schedulers.local import LocalJobScheduler
from reframe.core.schedulers.pbs import PbsJobScheduler
from reframe.frontend import loader
from reframe.frontend.executors import Runner
from reframe.frontend.executors.policies import SerialExecutionPolicy

FRONTEND = "reframe.frontend.cli"


# -- variables and parameters --------------------------------------------------------------------


def loaded_tests(name: str | None) -> Iterator[Any]:
    """All classes of tests of that name; None: of any.

    Missing: ReFrame keeps no list of classes. Does: asks Python for the subclasses of
    RegressionTest. To drop: once the loader lists them.
    """
    classes = [rfm.RegressionTest]
    for test in classes:
        classes += test.__subclasses__()
    return (test for test in classes if name in (None, test.__name__))


def has_variable(test: Any, name: str) -> bool:
    """True if a class of tests has a variable.

    Missing: `var_space` is not documented. Does: looks the name up there. To drop: once ReFrame
    refuses a -S that no test takes: it warns, and measures without it.
    """
    return name in test.var_space


def has_parameter(test: Any, name: str) -> bool:
    """Whether a class of tests has a parameter.

    Missing: `param_space` is not documented. Does: looks the name up there. To drop: once ReFrame
    refuses a -P that no test takes.
    """
    return name in test.param_space.params


def references_of(check: Any) -> Any:
    """The references of a check under its condition, by partition and variable.

    Missing: `reference` holds the file as it was read, with the values of all conditions. Does:
    asks for those that ReFrame itself would compare with. To drop: once that is public.
    """
    return check._resolve_reference()


# -- the session ---------------------------------------------------------------------------------


def around_loading(load: Callable[[str, Callable[[], Any]], Any]) -> None:
    """Have a function load each file of checks: it gets the name of the file and what loads it. A
    file that cannot be loaded, as with a wrong value of -S, ends the session.

    Missing: ReFrame skips such a file with a warning, and passes without its checks; one that ends
    Python ends the session with the status that it gives. Does: raises an error where the loader
    asks how severe one is, and wraps the method that loads a file. To drop: once an option asks
    for that.
    """
    load_from_file = loader.RegressionCheckLoader.load_from_file

    def refuse(*error: Any) -> NoReturn:
        asked = shlex.join(sys.argv[1:])
        raise ReframeError(f"{loader.what(*error)}; asked for: {asked}") from None

    @wraps(load_from_file)
    def loaded(check_loader: Any, filename: str, *arguments: Any, **options: Any) -> Any:
        return load(
            filename, lambda: load_from_file(check_loader, filename, *arguments, **options)
        )

    loader.is_severe = refuse
    loader.RegressionCheckLoader.load_from_file = loaded


def _variables_of_main() -> dict[str, Any]:
    """The local variables of ReFrame's main function; none in a process without it.

    Missing: an object for the session. Does: looks among the callers. To drop: with
    `session_uuid`.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and frame.f_globals.get("__name__") == FRONTEND:
            return dict(frame.f_locals)
        frame = frame.f_back
    return {}


def session_uuid() -> str | None:
    """The UUID of the session, as ReFrame prints it and keeps it in its database; None in a
    process without one.

    Missing: checks are not told. Does: reads it from the report of the session. To drop: once the
    runtime tells it.
    """
    report = _variables_of_main().get("report")
    return None if report is None else str(report["session_info"]["uuid"])


def run_one_by_one() -> None:
    """Run cases one after the other, unless the command line asks for a policy.

    Missing: the policy is an option of the command line only, and `max_jobs` is of a partition,
    of which two can have one file system. Does: replaces the default policy. To drop: once the
    configuration takes the policy.
    """
    module: Any = sys.modules.get(FRONTEND)
    asked = any(word.startswith("--exec") for word in sys.argv[1:])
    if not asked and hasattr(module, "AsynchronousExecutionPolicy"):
        module.AsynchronousExecutionPolicy = SerialExecutionPolicy


def around_listing(
    before: Callable[[list[Any]], None], after: Callable[[list[Any]], None]
) -> None:
    """Call a function with the cases of a listing (-l) before it is printed, another one after.

    Missing: a listing cannot be added to. Does: wraps the function that prints it. To drop: once
    there is a hook for sessions that gets the selected cases.
    """
    module: Any = sys.modules.get(FRONTEND)
    listed = getattr(module, "list_checks", None)
    if listed is None:
        return

    @wraps(listed)
    def list_checks(testcases: Any, *arguments: Any, **options: Any) -> None:
        before(list(testcases))
        listed(testcases, *arguments, **options)
        after(list(testcases))

    module.list_checks = list_checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A case that failed, or that was not started because one that it depends on failed."""

    check: Any
    partition: str  # with the system
    environment: str
    stage: str | None  # None where it was not started
    error: BaseException | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the run of a session ended."""

    aborted: bool  # without a failure
    failures: list[Failure]


def around_run(
    before: Callable[[list[Any]], None], after: Callable[[Ended], None] = lambda _: None
) -> None:
    """Call a function with the cases before ReFrame runs them, another one at the end.

    Missing: a session has no hooks, and a session in which nothing ran passes. Does: wraps the
    method that runs all cases. To drop: once there are hooks for the beginning and the end of a
    run.
    """
    run_all = Runner.runall

    @wraps(run_all)
    def runall(runner: Any, testcases: Any, *arguments: Any, **options: Any) -> Any:
        before(list(testcases))
        try:
            return run_all(runner, testcases, *arguments, **options)
        finally:
            after(_end_of(runner))

    Runner.runall = runall


def _end_of(runner: Any) -> Ended:
    """Result from the statistics of a runner: they are internal, but for the report."""
    failures = [
        Failure(
            check=task.check,
            partition=task.testcase.partition.fullname,
            environment=task.testcase.environ.name,
            stage=None if task.failed_deps else task.failed_stage,
            error=None if task.failed_deps else task.exc_info[1],
        )
        for task in runner.stats.tasks()
        if task.failed or task.failed_deps
    ]
    aborted = bool(runner.stats.aborted()) and not runner.stats.failed()
    return Ended(aborted=aborted, failures=failures)


# -- directories ---------------------------------------------------------------------------------


def directories() -> tuple[Path, Path]:
    """The directories in which the session stages its cases and keeps their output.

    Missing: the public ones end in a time stamp, which two sessions share. Does: reads the
    options. To drop: together with `use_directories`.
    """
    here = runtime()
    stage = Path(here.stagedir or Path(here.prefix) / "stage")
    output = Path(here.outputdir or Path(here.prefix) / "output")
    return stage.absolute(), output.absolute()


def use_directories(stage: Path, output: Path) -> None:
    """Stage the cases of the session, and keep their output, in these directories.

    Missing: ReFrame empties the stage directory of a case before it uses it, be it that of a job
    of another session. Does: sets the options as the command line would. To drop: once ReFrame
    locks its directories.
    """
    for option, folder in (("stagedir", stage), ("outputdir", output)):
        runtime().site_config.add_sticky_option(f"systems/{option}", str(folder))


def quote_path_of_local_jobs() -> None:
    """Start local jobs in directories with spaces in their paths, too.

    Missing: ReFrame splits the path of the script as a shell does, and starts its first word.
    Does: gives it the path with escapes while it starts the script. To drop: once ReFrame quotes
    it.
    """
    submit = LocalJobScheduler.submit

    @wraps(submit)
    def quoted(scheduler: Any, job: Any) -> None:
        name = job.script_filename
        job._script_filename = re.sub(r"([^\w@%+=:,./-])", r"\\\1", str(Path(name).absolute()))
        try:
            submit(scheduler, job)
        finally:
            job._script_filename = name

    LocalJobScheduler.submit = quoted


def quote_path_of_pbs_jobs() -> None:
    """Start jobs of PBS and Torque in directories with spaces in their paths, too.

    Missing: ReFrame changes to the directory without quotes, so that the job goes on and writes in
    the home directory. Does: quotes it in that line of the script. To drop: once ReFrame quotes
    it.
    """
    emit = PbsJobScheduler.emit_preamble

    @wraps(emit)
    def emit_preamble(scheduler: Any, job: Any) -> list[str]:
        plain, quoted = f"cd {job.workdir}", f"cd {shlex.quote(job.workdir)}"
        return [quoted if line == plain else line for line in emit(scheduler, job)]

    PbsJobScheduler.emit_preamble = emit_preamble


# -- the one call --------------------------------------------------------------------------------


@cache
def attach(
    on_selection: Callable[[list[Any]], None],
    on_listing: Callable[[list[Any]], None],
    on_run: Callable[[list[Any]], None],
) -> None:
    """Prepare ReFrame for our checks, once in a process: `on_selection` gets the cases of a
    listing or a run before it begins, `on_listing` those of a listing after it, `on_run` those of
    a run before it, if it is not refused."""
    run_one_by_one()
    around_listing(on_selection, on_listing)

    def before(testcases: list[Any]) -> None:
        on_selection(testcases)
        on_run(testcases)

    around_run(before)
    quote_path_of_local_jobs()
    quote_path_of_pbs_jobs()
