"""The option that rewrites tests/messages.json (see support/said.py)."""

import os

import pytest

from tests.support import said


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(said.REWRITE, action="store_true", help=f"write {said.MESSAGES.name}")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption(said.REWRITE):
        if config.getoption("numprocesses", None):
            raise pytest.UsageError(f"{said.REWRITE}: expected one process, without -n")
        os.environ["PYTEST_SAID"] = said.REWRITE


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.getoption(said.REWRITE):
        said.write()
