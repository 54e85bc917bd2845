"""Darshan logs, decoded in a stream: memory does not grow with the number of records or names.

    with darshanlog.open_log(path) as log:
        for block in log.records("POSIX"):
            written_bytes += int(block["POSIX_BYTES_WRITTEN"].sum())

Log versions 3.00 to 3.41, of either byte order and any compression; see `Log` for what it offers.
"""

from understudy.darshanlog.folders import Below, logs_below
from understudy.darshanlog.header import Job, Module, Mount
from understudy.darshanlog.joined import JOB_GAP_S, JoinedLog, Twins, Wave, open_joined
from understudy.darshanlog.log import DAMAGED, MORE_MEMORY, Log, open_log
from understudy.darshanlog.records import (
    DxtRecord,
    HeatmapRecord,
    LustreComponent,
    LustreRecord,
    record_dtype,
    record_keys,
)

__all__ = [
    "DAMAGED",
    "JOB_GAP_S",
    "MORE_MEMORY",
    "Below",
    "DxtRecord",
    "HeatmapRecord",
    "Job",
    "JoinedLog",
    "Log",
    "LustreComponent",
    "LustreRecord",
    "Module",
    "Mount",
    "Twins",
    "Wave",
    "logs_below",
    "open_joined",
    "open_log",
    "record_dtype",
    "record_keys",
]
