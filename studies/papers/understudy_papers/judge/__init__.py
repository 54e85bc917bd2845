"""Claims and sizes of publications, held against runs."""
