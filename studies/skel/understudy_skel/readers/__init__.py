"""The reader of ADIOS descriptors."""
