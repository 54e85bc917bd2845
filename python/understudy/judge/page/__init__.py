"""Summaries that the page and the terminal show."""
