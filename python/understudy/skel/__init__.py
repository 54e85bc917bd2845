"""Skeletal applications: from an ADIOS descriptor to a stand-alone program that writes the same.

`model` is the descriptor and its parameters, `generate` makes files from the templates in
`templates/`, and `runtime/` holds the C sources that every skeleton carries with it.
"""
