"""The log: its records, screened and added up, as accesses of ranks to files."""
