"""Skeletal applications and applications whose calls of ADIOS are measured."""
