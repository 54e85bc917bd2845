"""The limit of errors, stated once; a fraction, as everywhere but where a person reads."""

LIMIT_FRACTION = 0.10
