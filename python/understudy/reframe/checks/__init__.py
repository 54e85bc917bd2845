"""The questions of the checks in checks/."""
