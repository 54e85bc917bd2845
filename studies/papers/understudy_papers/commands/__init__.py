"""Commands that make workloads from published numbers."""
