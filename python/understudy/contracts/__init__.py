"""The JSON contracts as frozen dataclasses, read strictly."""
