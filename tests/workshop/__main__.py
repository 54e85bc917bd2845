"""python -m tests.workshop record|compare [CASE …]

record runs the programs again, for logs and truth; compare shows what is described otherwise.
"""

import os
import sys
from collections.abc import Sequence

from tests.workshop import live
from tests.workshop.cases import CASES, Case
from tests.workshop.compare import compared
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
    for case in cases:
        for log in sorted(live.LOGS.glob(f"{case.name}*.darshan")):
            if log.name.partition(".")[0] != case.name:
                continue
            found = compared(log, case)
            print(f"{log.name}: {sum(m.right for m in found)} of {len(found)} right")
            for m in found:
                if not m.right:
                    print(
                        f"    {m.verdict}: {m.stream} {m.quantity} {m.truth} described as "
                        f"{m.described} {m.noted[:110]}"
                    )


def main() -> int:
    what, names = sys.argv[1], sys.argv[2:]
    chosen = [c for c in CASES if c.name in names or not names]
    {"record": record, "compare": compare}[what](chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
