"""The one exception that the project raises on purpose."""


class UnderstudyError(Exception):
    """A sentence for the user: what could not be done, with file, key and what was expected."""
