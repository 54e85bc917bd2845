"""What the ReFrame checks share: base classes, words of a system file, the proof of work."""
