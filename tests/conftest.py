"""The options that rewrite tests/messages.json and tests/readers/described."""

import os

import pytest

from tests.support import described, said

REWRITES = {
    said.REWRITE: ("PYTEST_SAID", said),
    described.REWRITE: ("PYTEST_DESCRIBED", described),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for option, (_, of) in REWRITES.items():
        parser.addoption(option, action="store_true", help=(of.__doc__ or "").partition(",")[0])


def pytest_configure(config: pytest.Config) -> None:
    for option, (variable, _) in REWRITES.items():
        if config.getoption(option):
            if config.getoption("numprocesses", None):
                raise pytest.UsageError(f"{option}: expected one process, without -n")
            os.environ[variable] = option


def pytest_unconfigure(config: pytest.Config) -> None:
    for option, (_, of) in REWRITES.items():
        if config.getoption(option):
            of.write()
