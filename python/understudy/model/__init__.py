"""From stated numbers to a workload: sizes, growth, schedules, compositions, simulations."""
