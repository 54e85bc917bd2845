"""The bases of checks/skel.py."""
