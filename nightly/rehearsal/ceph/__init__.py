"""A rehearsal on CephFS: the player and the checks on a real striped file system on this host."""
