# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""A job for a command that starts ReFrame itself: `understudy campaign --submit` runs this file as
a check, so that the system's own access options, modules and batch system are used."""

import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.builtins import run_before, sanity_function, variable

from understudy.reframe.session import job_failures, session
from understudy.reframe.systems import MPI


@rfm.simple_test
class Allocation(rfm.RunOnlyRegressionTest):
    """Runs a script on the first of some nodes."""

    script = variable(str)  # a file
    nodes = variable(int, value=1)
    ranks_per_node = variable(int, value=1)
    sourcesdir = None
    exclusive_access = True
    valid_systems = [f"+{MPI}"]
    valid_prog_environs = [f"+{MPI}"]
    executable = "bash"

    @run_before("run")
    def ask_for_nodes(self) -> None:
        session.note_work()
        self.num_tasks = self.nodes * self.ranks_per_node
        self.num_tasks_per_node = self.ranks_per_node
        self.executable_opts = [self.script]
        self.job.launcher = getlauncher("local")()  # the script itself uses the partition's
        scheduler = self.current_partition.scheduler.registered_name
        self.job.options += job_failures.NO_REQUEUE.get(scheduler, [])

    @sanity_function
    def it_ended(self) -> bool:
        """Return True: the results are in the records of its turns."""
        return True
