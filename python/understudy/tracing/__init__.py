"""From a trace of the calls of the system that a program made to calls that can be made again.

`lines` reads what strace writes; `recorder_files` and `recorder_calls` read what Recorder writes,
and make calls of the system of those of libraries. `processes` follows descriptors, names and
sizes, `dxt` takes the calls of a Darshan log, `folding` finds loops, `program` makes a workload.
"""
