"""The only place that compares numbers with limits: fidelity, accuracy, metrics, verdicts."""
