"""States at the end of a run how much was compared with the oracle."""

from typing import Any

from tests.darshanlog.tally import compared


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if compared:
        what = ", ".join(f"{number} {name}" for name, number in compared.items())
        terminalreporter.write_line(f"darshanlog: compared {what}")
