"""What was observed of an application and of its replica, from logs and workloads."""
