"""Records that are kept: the folder of a site, its index, and tables of any number of runs."""
