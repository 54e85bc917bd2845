"""Observations of an application and of its replica, from logs and workloads."""
