"""Readers: one file per trace format, each with `read(path, …) -> Workload`."""
