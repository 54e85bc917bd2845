"""python -m tests.workshop record|compare|replay|table [CASE …]

record runs the programs again, for logs and truth; compare shows what is described otherwise;
replay plays the descriptions under Darshan; table writes tests/workshop/table.md.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.workshop import live
from tests.workshop.cases import CASES, Case
from tests.workshop.compare import compared
from tests.workshop.replay import play
from tests.workshop.replay import save as merge
from tests.workshop.table import DOC, REPLAYED, page
from tests.workshop.truth import save


def record(cases: Sequence[Case]) -> None:
    runtime = os.environ["DARSHAN_RUNTIME"]
    live.build(live.BASE / "bin")
    live.LOGS.mkdir(exist_ok=True)
    for case in cases:
        if reason := live.missing(case):
            print(f"{case.name}: {reason}")
            continue
        for dxt, ending in ((False, ""), (True, ".dxt")):
            log = live.LOGS / f"{case.name}{ending}.darshan"
            save(live.record(case, runtime, dxt, log), log.with_suffix(".truth.json"))
        print(case.name, flush=True)


def compare(cases: Sequence[Case]) -> None:
    for log, case in _logs(cases):
        measures = compared(log, case)
        print(f"{log.name}: {sum(m.right for m in measures)} of {len(measures)} right")
        for m in measures:
            if not m.right:
                print(
                    f"    {m.verdict}: {m.stream} {m.quantity} {m.truth} described as "
                    f"{m.described} {m.noted[:110]}"
                )


def replay(cases: Sequence[Case]) -> None:
    for log, case in _logs(cases):
        played = play(log, case, os.environ["DARSHAN_RUNTIME"])
        merge({log.stem: played}, REPLAYED)
        print(log.name, played.get("reason", ""), played.get("failures", ""), flush=True)


def table(_: Sequence[Case]) -> None:
    DOC.write_text(page())


def _logs(cases: Sequence[Case]) -> Iterator[tuple[Path, Case]]:
    for case in cases:
        for ending in ("", ".dxt"):
            log = live.LOGS / f"{case.name}{ending}.darshan"
            if log.exists():
                yield log, case


def main() -> int:
    what, names = sys.argv[1], sys.argv[2:]
    chosen = [c for c in CASES if c.name in names or not names]
    {"record": record, "compare": compare, "replay": replay, "table": table}[what](chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
