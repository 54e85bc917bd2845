"""Costs of Darshan: operations, overhead and shutdown."""
