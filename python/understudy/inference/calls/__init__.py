"""Calls of files: their numbers, sizes and places, as counters tell them."""
