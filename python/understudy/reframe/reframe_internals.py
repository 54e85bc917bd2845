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
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import reframe as rfm
from reframe.core.fields import make_convertible, remove_convertible
from reframe.core.runtime import runtime
from reframe.core.schedulers.local import LocalJobScheduler
from reframe.core.schedulers.pbs import PbsJobScheduler
from reframe.frontend.executors import Runner
from reframe.frontend.executors.policies import SerialExecutionPolicy
from reframe.frontend.loader import RegressionCheckLoader

FRONTEND = "reframe.frontend.cli"
RegressionTestMeta: Any = type(rfm.RegressionTest)


# -- classes of checks ---------------------------------------------------------------------------


class AbstractMeta(RegressionTestMeta, ABCMeta):
    """ReFrame's metaclass with abstract methods, and a method for a wrong value of -S.

    Missing: a check cannot have abstract methods, because its metaclass is not ABCMeta, and a
    value that a variable does not take skips the file of the check or ends in a traceback. Does:
    derives from both metaclasses, and calls `refuse_value`. -P and --repeat call ReFrame's
    metaclass by its name for a class that has passed it already: such a class is made without it.
    To drop: once `setvar` reports wrong values, raise NotImplementedError in place of the abstract
    methods.
    """

    def __new__(cls, name: str, bases: Any, namespace: Any, **options: Any) -> Any:
        if "deferrable" in namespace:  # a builtin of class bodies, which ReFrame takes out
            return super().__new__(cls, name, bases, namespace, **options)
        return ABCMeta.__new__(cls, name, bases, namespace, **options)

    def setvar(cls, name: str, value: Any) -> bool:
        try:
            return bool(super().setvar(name, value))
        except (TypeError, ValueError):
            text = remove_convertible(value)
            if text is value:  # not of the command line
                raise
            cls.refuse_value(name, str(text))

    def refuse_value(cls, name: str, text: str) -> NoReturn:
        """Called with the name of a variable and the text that it does not take."""
        raise NotImplementedError


class Selectable(rfm.RegressionTestPlugin):
    """Part of a check: a hook between the selection of the tests and the first of them.

    Missing: checks are created before it is known which are selected, and the next hook is in the
    setup of the first. Does: ReFrame asks every check for its dependencies (`user_deps`) once the
    selection is known, before it lists or runs any; this calls `before_any_runs` then. To drop:
    once there is a hook for sessions.
    """

    def before_any_runs(self) -> None:
        """Called once the selection is known."""

    def user_deps(self) -> Any:
        self.before_any_runs()
        return super().user_deps()


def ignore_former_name(test: Any) -> None:
    """Have ReFrame skip a warning on `variables`, the former name of `env_vars`.

    Missing: ReFrame 4.10 inspects the stack twice for each test to warn of it, even where it
    suppresses the warning: 40 % of the time of `reframe -l` for a system with many cases. Does:
    takes the former name of a class, and of those derived from it, as one that never warns. To
    drop: once ReFrame has dropped `variables`.
    """
    former = test.var_space.vars.get("variables")
    if former is not None and former.is_deprecated():
        former.field._op = 0


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

    Missing: `var_space` is not documented. Does: looks the name up there. To drop: once a test
    tells its variables.
    """
    return name in test.var_space


def variable_types(test: Any, name: str) -> list[type]:
    """The types that a variable of a class of tests takes.

    Missing: a variable does not tell its types. Does: reads those of its field. To drop: once a
    test tells its variables.
    """
    return list(test.var_space[name].field.valid_types)


def takes_value(test: Any, name: str, text: str) -> bool:
    """True if a variable of a class of tests takes a text of the command line.

    Missing: a value can only be tried by setting it. Does: sets it on an object that is thrown
    away. To drop: once a variable can be asked.
    """
    try:
        test.var_space[name].field.__set__(_Target(), make_convertible(text))
    except (TypeError, ValueError):
        return False
    return True


class _Target:
    """Takes a value of a variable."""


def parameter_type(test: Any, name: str) -> Callable[[str], Any] | None:
    """Converter from a text of the command line to a parameter of a class of tests; None if it has
    no such parameter.

    Missing: `param_space` is not documented. Does: looks the name up there. To drop: once a test
    tells its parameters.
    """
    parameter = test.param_space.params.get(name)
    return None if parameter is None else parameter.type


def references_of(check: Any) -> Any:
    """The references of a check under its condition, by partition and variable.

    Missing: `reference` holds the file as it was read, with the values of all conditions. Does:
    asks for those that ReFrame itself would compare with. To drop: once that is public.
    """
    return check._resolve_reference()


# -- the session ---------------------------------------------------------------------------------


def around_loading(load: Callable[[str, Callable[[], Any]], Any]) -> None:
    """Have a function load each file of checks: it gets the name of the file and what loads it.

    Missing: a file that ends Python ends the session, with the status that it gives. Does: wraps
    the method that loads a file. To drop: once ReFrame refuses such a file.
    """
    load_from_file = RegressionCheckLoader.load_from_file

    @wraps(load_from_file)
    def loaded(loader: Any, filename: str, *arguments: Any, **options: Any) -> Any:
        return load(filename, lambda: load_from_file(loader, filename, *arguments, **options))

    RegressionCheckLoader.load_from_file = loaded


def _variables_of_main() -> dict[str, Any]:
    """The local variables of ReFrame's main function; none in a process without it.

    Missing: an object for the session. Does: looks among the callers. To drop: with its callers,
    `session_uuid` and `selected_cases`.
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


def selected_cases() -> list[Any] | None:
    """The test cases that are selected; None before they are known.

    Missing: checks are not told which are selected. Does: reads the list of the main function. To
    drop: once there is a hook for sessions that gets them.
    """
    variables = _variables_of_main()
    cases = variables.get("testcases")
    return list(cases) if "testcases_all" in variables and isinstance(cases, list) else None


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


def before_parameterizing(check: Callable[[], None]) -> None:
    """Call a function before ReFrame gives the cases the values of -P.

    Missing: ReFrame warns of a name that it does not know once for each case. Does: wraps the
    function that gives the values. To drop: once an unknown name is one error.
    """
    module: Any = sys.modules.get(FRONTEND)
    parameterize = getattr(module, "parameterize_tests", None)
    if parameterize is None:
        return

    @wraps(parameterize)
    def checked(*arguments: Any) -> Any:
        check()
        return parameterize(*arguments)

    module.parameterize_tests = checked


def after_listing(summarize: Callable[[Iterable[Any]], None]) -> None:
    """Call a function with the cases of a listing (-l) once it is printed.

    Missing: a listing cannot be added to. Does: wraps the function that prints it. To drop: once
    there is a hook for sessions that gets the selected cases; without the function, nothing is
    called.
    """
    module: Any = sys.modules.get(FRONTEND)
    listed = getattr(module, "list_checks", None)
    if listed is None:
        return

    @wraps(listed)
    def list_checks(testcases: Any, *arguments: Any, **options: Any) -> None:
        listed(testcases, *arguments, **options)
        summarize(testcases)

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
    before: Callable[[int], None], after: Callable[[Ended], None] = lambda _: None
) -> None:
    """Call a function with the number of cases before ReFrame runs them, another one at the end.

    Missing: a session has no hooks, and a session in which nothing ran passes. Does: wraps the
    method that runs all cases. To drop: once there are hooks for the beginning and the end of a
    run.
    """
    run_all = Runner.runall

    @wraps(run_all)
    def runall(runner: Any, testcases: Any, *arguments: Any, **options: Any) -> Any:
        before(len(testcases))
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

    Missing: ReFrame splits the path of the script as a shell does. Does: gives it the path with
    escapes while it starts the script. To drop: once ReFrame quotes it.
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

    Missing: ReFrame changes to the directory without quotes. Does: quotes it in that line of the
    script. To drop: once ReFrame quotes it.
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
    test: Any,
    *,
    on_names: Callable[[], None],
    on_listing: Callable[[Iterable[Any]], None],
    on_run: Callable[[int], None],
) -> None:
    """Prepare ReFrame for the checks derived from a class, once in a process: `on_names` checks
    what -S and -P name, `on_listing` gets the cases of a listing, `on_run` the number of cases of
    a run before it begins."""
    ignore_former_name(test)
    run_one_by_one()
    before_parameterizing(on_names)
    after_listing(on_listing)
    around_run(on_run)
    quote_path_of_local_jobs()
    quote_path_of_pbs_jobs()
