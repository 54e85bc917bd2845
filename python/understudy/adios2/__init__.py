"""ADIOS2: its output (BP4 and BP5), its configurations, its engines and their parameters."""
