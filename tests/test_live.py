"""Progress of a campaign: a line for each case on a terminal, and nothing anywhere else."""

import io

from rich.console import Console

from understudy.reframe.live import Live


def live(terminal: bool) -> tuple[Live, io.StringIO, list[float]]:
    text, now = io.StringIO(), [100.0]
    console = Console(file=text, force_terminal=terminal, width=160, color_system=None)
    return Live(console, lambda: now[0]), text, now


def test_each_case_has_a_line() -> None:
    made, text, now = live(True)
    made.skip()
    for name, took_s in (("a", 20.0), ("b\x1b[2J", 60.0), ("c", 10.0)):
        made.begin(name)
        now[0] += took_s
        made.end(name, 1 << 30, 10)
    lines = text.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[0] == "1 of 10 cases (1 skipped), 1.00 GiB, about 160 s left; slowest: 20.0 s, a"
    assert lines[2].startswith(
        "3 of 10 cases (1 skipped), 3.00 GiB, about 180 s left; slowest: 60.0 s"
    )
    assert "b\\x1b[2J" in lines[2] and "\x1b[2J" not in text.getvalue()


def test_without_a_terminal_nothing_is_printed() -> None:
    made, text, _ = live(False)
    made.begin("a")
    made.end("a", 1, None)
    assert text.getvalue() == "" and made.done == 1


def test_an_unknown_number_of_cases_has_no_end() -> None:
    made, _, now = live(True)
    made.begin("a")
    assert made.line(now[0], None).startswith("0 cases, 0 B; slowest: ")
