"""Does the player of the modules Understudy do all of a workload's I/O, at each scale?

A test for EESSI's test suite (PyPI: eessi-testsuite 1.1):
reframe -C CONFIG -c packaging/eessi/understudy.py -r --tag CI
"""

import json
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from eessi.testsuite.constants import COMPUTE_UNITS, DEVICE_TYPES, SCALES
from eessi.testsuite.eessi_mixin import EESSI_Mixin
from eessi.testsuite.utils import find_modules
from reframe.core.builtins import (
    deferrable,
    parameter,
    performance_function,
    run_before,
    sanity_function,
    variable,
)

RESULT = "result.json"


@rfm.simple_test
class EESSI_Understudy(rfm.RunOnlyRegressionTest, EESSI_Mixin):
    descr = "A workload of Understudy, scaled weakly to all ranks"
    module_info = parameter(find_modules("Understudy"))
    workload = parameter(["n-1", "n-n"], loggable=True)
    # Their grids are of two rows of ranks.
    scale = parameter(name for name in SCALES if name != "1_core")
    device_type = DEVICE_TYPES.CPU
    compute_unit = COMPUTE_UNITS.CPU
    used_cpus_per_task = 1
    time_limit = "30m"
    is_ci_test = True
    sourcesdir = None
    readonly_files = [""]  # noqa: RUF012
    # The directory that is measured; by default in the stage directory.
    directory = variable(str, value="run", loggable=True)
    executable = "understudy-replay"

    def required_mem_per_node(self):
        return self.num_tasks_per_node * 512

    @run_before("run")
    def play_the_workload_on_all_ranks(self):
        source = f'"$(understudy doctor --paths workloads)/{self.workload}.json"'
        scale = f"-n {self.num_tasks} --rule weak -o workload.json"
        self.prerun_cmds += [f"understudy describe {source} {scale}"]
        self.executable_opts = ["-w", "workload.json", "-o", self.directory, "-O", RESULT]

    @deferrable
    def result(self):
        return json.loads(Path(self.stagedir, RESULT).read_text(encoding="utf-8"))

    @sanity_function
    def all_ranks_finished(self):
        result = self.result()
        return sn.all(
            [
                sn.assert_eq(result["environment"]["ranks"], self.num_tasks),
                sn.assert_true(result["finished"]),
            ]
        )

    @performance_function("s")
    def elapsed(self):
        return self.result()["repetitions"][0]["elapsed_s"]
