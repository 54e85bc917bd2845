"""Common parts of the ReFrame checks: base classes, words of a system file, the proof of work."""
