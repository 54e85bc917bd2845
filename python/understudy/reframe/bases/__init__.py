"""Base classes of the checks, one question each."""
