"""Processes that may have written where Darshan sees nothing: a shell opens the file of a
redirection, and the program writes to a descriptor of which its log does not know the file.

That a process wrote to no file is what such a log has of it. Ranks of MPI write to their launcher.
"""

import numpy as np

from understudy.darshanlog import JoinedLog, Log, open_log
from understudy.inference.log.interface_counters import not_junk


def may_inherit(log: Log) -> bool:
    """True if a process without MPI, or one without a record, wrote to none of the files that its
    log names."""
    if not isinstance(log, JoinedLog):
        return log.job.nprocs == 1 and not _writes(log)
    if log.empty:
        return True
    for run in log.runs:
        if run.job.nprocs == 1:
            with open_log(run.path) as run_log:
                if not _writes(run_log):
                    return True
    return False


def _writes(log: Log) -> bool:
    kept = not_junk(log)
    for module in ("POSIX", "STDIO"):
        region = log.modules.get(module)
        for block in log.records(module) if region is not None and region.supported else ():
            if np.any(kept(block["id"]) & (block[f"{module}_BYTES_WRITTEN"] > 0)):
                return True
    return False
