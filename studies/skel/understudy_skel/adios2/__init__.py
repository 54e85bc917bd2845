"""Skeletal applications for ADIOS2: from a file or a configuration to a program in C++ or Python.

`plan` works out what each process writes in each step, `source` and `python` make programs of it,
`project` decides what an input is and writes the files.
"""
