"""The report of few and of hundreds of cases: bytes, and seconds until a browser has drawn it.

    PYTHONPATH=python:. python benchmarks/page.py [--rounds N]

Makes the page of 4 cases and that of 300 (15 workloads, 5 places, 4 methods, 2 sessions; numbers
are made up). Chromium takes a picture of the first screen of each and of an empty page, in turn;
printed are the medians of its seconds beyond those of the empty page, and the ratio of both pages.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from statistics import median

from tests.support import results
from understudy.contracts.workload import Workload
from understudy.judge.statistics import pooling
from understudy.report import page, pdf

WORKLOADS, PLACES, METHODS = 15, 5, ("posix", "mpiio", "hdf5", "stdio")
SMALL = 1, 1
MIB = 1 << 20


def workload(number: int) -> Workload:
    count = 6 + 2 * number
    streams = [
        results.stream(
            "state",
            "checkpoint",
            [(8 + k) * MIB for k in range(count)],
            [30.0 * k for k in range(count)],
        ),
        results.stream("log", "output", [MIB] * count, [15.0 * k for k in range(count)]),
    ]
    return results.workload(f"application-{number}", streams)


def text(folder: Path, workloads: int, places: int) -> str:
    """The page of workloads in places by each method."""
    for number, place, method, night in product(
        range(workloads), range(places), METHODS, range(2)
    ):
        name = f"{number}-{place}-{method}-{night}"
        row = results.result(
            workload(number),
            method=method,
            seed=hash((number, place, night)) % 1000,
            speed=0.4 + 0.7 * place,
            repetitions=2,
            started=f"2026-01-0{night + 1}T01:00:00Z",
        )
        results.write_record(
            row,
            folder / name,
            partition=f"place-{place}",
            session=f"night-{night}",
            case=f"{number} {method}",
        )
    return page.render(pooling.apart(results.cases_in(folder)))


def drawn_s(path: Path) -> float:
    """Seconds of the browser from its start to the picture of the first screen."""
    with tempfile.TemporaryDirectory() as home:
        picture = Path(home) / "page.png"
        command = [str(pdf.browser()), *pdf.arguments(home), "--window-size=1280,900"]
        begin = time.perf_counter()
        subprocess.run(
            [*command, f"--screenshot={picture}", path.as_uri()], capture_output=True, check=False
        )
        took_s = time.perf_counter() - begin
        if not picture.exists():
            sys.exit("page.py: the browser took no picture")
    return took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    if pdf.browser() is None:
        sys.exit("page.py: no Chromium")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = {0: folder / "empty.html"}
        paths[0].write_text("<!doctype html><p>empty</p>")
        for cases, (workloads, places) in {4: SMALL, 300: (WORKLOADS, PLACES)}.items():
            paths[cases] = folder / f"{cases}.html"
            paths[cases].write_text(text(folder / str(cases), workloads, places))
        times: dict[int, list[float]] = {cases: [] for cases in paths}
        for _ in range(rounds):
            for cases, path in paths.items():
                times[cases].append(drawn_s(path))
        empty, small, large = (median(times_of_page) for times_of_page in times.values())
        for cases, took_s in ((4, small), (300, large)):
            size = paths[cases].stat().st_size / MIB
            print(f"{cases:3d} cases: {size:.2f} MiB, drawn in {took_s - empty:.2f} s")
        print(f"empty page: {empty:.2f} s; 300 cases over 4, all in all: {large / small:.2f}")


if __name__ == "__main__":
    main()
