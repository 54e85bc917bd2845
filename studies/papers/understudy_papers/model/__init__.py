"""Sizes, growth and schedules of simulations: Equations 1 to 4."""
