"""The page: from result files to one self-contained HTML file with figures, tables and origins."""
