"""Descriptions of the logs of the workshop against the truth of the file system.

`python -m tests.workshop record` makes logs and truth. What is described wrongly, and why, stands
in `WRONG` of `tests.workshop.cases`; an entry that is right meanwhile has to go.
"""

from pathlib import Path

import pytest

from tests.workshop.cases import BY_NAME, CASES, known_wrong
from tests.workshop.compare import compared
from tests.workshop.live import LOGS
from tests.workshop.table import DOC, page
from tests.workshop.truth import Event, events, told
from understudy.darshanlog import open_log

RECORDED = sorted(LOGS.glob("*.darshan"))


def test_every_case_has_its_logs() -> None:
    expected = {f"{case.name}{dxt}.darshan" for case in CASES for dxt in ("", ".dxt")}
    assert {log.name for log in RECORDED} == expected
    assert sum(p.stat().st_size for p in LOGS.iterdir()) < 400_000
    assert max(p.stat().st_size for p in LOGS.iterdir()) < 30_000


@pytest.mark.parametrize("log", RECORDED, ids=[p.name for p in RECORDED])
def test_the_description_is_the_truth(log: Path) -> None:
    measures = compared(log, BY_NAME[log.name.partition(".")[0]])
    wrong = {f"{m.stream} {m.quantity}": m for m in measures if m.verdict == "wrong"}
    expected_wrong = known_wrong(log.stem)
    assert {key: m for key, m in wrong.items() if key not in expected_wrong} == {}
    assert [key for key in expected_wrong if key not in wrong] == []


def test_no_log_names_this_machine() -> None:
    for log in RECORDED:
        with open_log(log) as opened:
            assert opened.exe.startswith(("/tmp/workshop/", "/usr/bin/", "python3 /tmp/workshop/"))
            assert [mount.path for mount in opened.mounts] == ["/"]
            for _, names in opened.names():
                assert all(
                    name.startswith((b"/tmp/workshop/", b"heatmap:", b"<STD")) for name in names
                )


TRACE = """\
10 1.0 openat(AT_FDCWD</w>, "out.1", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3</w/out.1>
10 1.1 access("@out", F_OK) = -1 ENOENT (No such file or directory)
10 1.2 pwrite64(3</w/out.1>, "aaaa"..., 100, 0) = 100
11 1.25 pwrite64(3</w/out.1>, "aa, )"..., 50 <unfinished ...>
10 1.3 fsync(3</w/out.1>) = 0
11 1.4 <... pwrite64 resumed>, 100) = 50
10 1.5 openat(AT_FDCWD</w>, "none", O_RDONLY) = -1 ENOENT (No such file or directory)
10 1.6 write(4</elsewhere/out.2>, "a"..., 7) = 7
10 1.7 access("@", F_OK) = -1 ENOENT (No such file or directory)
10 1.8 access("@out", F_OK) = -1 ENOENT (No such file or directory)
10 1.9 pwrite64(3</w/out.1>, "aaaa"..., 100, 150) = 100
10 2.0 rename("out.1", "out.2") = 0
"""


def test_a_trace_is_added_up_by_marks() -> None:
    truth = told(list(events(TRACE.splitlines(), 2, "/w")), 4, {}, {})
    assert truth.streams == {
        "out:write": {
            "dumps": [150, 100],
            "names": 1,
            "ranks": 1,
            "calls": 3,
            "opens": 0,
            "steps": 2,
            "flags": [],
            "again": "",
            "order": "consecutive",
        }
    }
    assert truth.operations == {"rename": 1, "sync": 1}


def test_a_trace_without_marks_is_added_up_by_names() -> None:
    patterns = {"out": r"out\.\d"}
    trace_events: list[Event] = list(events(TRACE.splitlines(), 0, "/w"))
    truth = told([e for e in trace_events if e.what != "rename"], 4, patterns, {})
    assert truth.streams["out:write"]["dumps"] == [250]
    assert truth.streams["out:write"]["opens"] == 1


def test_the_page_is_that_of_the_logs() -> None:
    assert DOC.read_text() == page(), "write it again: python -m tests.workshop table"
