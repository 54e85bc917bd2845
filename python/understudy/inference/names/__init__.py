"""File names: templates, the numbers in them and what these count."""
