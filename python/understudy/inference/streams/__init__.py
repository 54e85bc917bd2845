"""Streams: the files that belong together, and their role."""
