"""Fidelity of replicas, and their transfer to other storage."""
