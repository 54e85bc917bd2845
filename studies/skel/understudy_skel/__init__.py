"""Skeletal applications: from an ADIOS descriptor to a stand-alone program that writes the same.

`descriptor` and `parameters` read the input, `generate` makes files from the templates in
`templates/` through the filters of `escape`, and proxies/skeleton/ holds the C sources that every
skeleton carries with it.
"""
