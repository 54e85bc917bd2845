"""Run all tests, those of the player (ctest) and those in Python (pytest); count them together.

With MPICH, a part of those of the player: `MPICH` says which, and `ctest --test-dir build/mpich`
runs them all.

The last line is "N passed, N failed, N skipped"; before it stand the skips with their reasons and
the failures. The exit status is 0 only if every suite ran at least one case, none failed, and as
many were skipped as tests/skips.txt states for what this machine lacks. Arguments are passed on to
pytest, and the skips are not counted then.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.support import needs

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
SKIPS = ROOT / "tests" / "skips.txt"
# What MPI and its launcher decide: transfers, errors and lost ranks, stops, the watchdog. Cases
# named for ADIOS or HDF5 are left out, since build/mpich may lack them; others only take long.
MPICH = (
    r"^mpi\.(methods|play\.(collective|shared)|rewrite|errors|killed|watch|"
    r"run\.(informs|says|stops))"
)
MPICH_LEFT_OUT = r"adios|h5|hdf5|full-disk$|short-file|file-of-another|leaves-pauses"
# The ranks of a test share a node: Open MPI starts faster if it looks for no networks, and hwloc
# for no devices.
ENVIRONMENT = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "^tcp,openib,usnic,ofi",
    "HWLOC_COMPONENTS": "-pci,-linuxio",
} | os.environ


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case of one suite; the reason says why it was skipped or failed."""

    name: str
    outcome: str
    reason: str


def outcome(case: ElementTree.Element) -> tuple[str, str]:
    """The outcome of a <testcase> and the message that goes with it."""
    for tag, kind in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        if (element := case.find(tag)) is not None:
            message = element.get("message", "").partition("\n")[0]
            if message == "collection skipped":  # a module, whose reason is in the text
                message = re.sub(r"(?s).*'Skipped: (.*)'\)\s*", r"\1", element.text or "")
            # ctest, which alone gives a status, has the reason in the last line printed.
            printed = case.findtext("system-out", "").strip().splitlines()
            return kind, printed[-1] if case.get("status") and printed else message
    return "passed", ""


def cases(report: Path) -> Iterator[Case]:
    """The cases of a JUnit report."""
    for case in ElementTree.parse(report).iter("testcase"):
        name = "::".join(dict.fromkeys((case.get("classname", ""), case.get("name", ""))))
        kind, reason = outcome(case)
        yield Case(name=name, outcome=kind, reason=reason)


def run(suite: str, command: list[str], cwd: Path) -> tuple[list[Case], bool]:
    """Run a suite and read its report; False where it failed or ran nothing."""
    report = BUILD / f"{suite}.xml"
    report.unlink(missing_ok=True)
    print(f"== {suite}", flush=True)
    done = subprocess.run([*command, str(report)], cwd=cwd, env=ENVIRONMENT, check=False)
    if not report.exists():
        print(
            f"{suite}: no report {report.name} was written (ctest: CMake 3.21 or newer is needed)"
        )
        return [], False
    results = list(cases(report))
    if not any(case.outcome != "skipped" for case in results):
        print(f"{suite}: no case ran")
        return results, False
    return results, done.returncode == 0


def with_mpich(ctest: list[str]) -> tuple[list[Case], bool]:
    """The part of ctest that runs with MPICH; one skipped case where MPICH is missing."""
    if reason := needs.lacking("MPICH"):
        return [Case(name="ctest-mpich", outcome="skipped", reason=reason)], True
    part = ["-R", MPICH, "-E", MPICH_LEFT_OUT]
    return run("ctest-mpich", [*ctest, *part, "--output-junit"], BUILD / "mpich")


def table(path: Path) -> list[list[str]]:
    """The fields of the lines of a file, which "|" separates."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [[field.strip() for field in x.split("|")] for x in lines if not x.startswith("#")]


def installed() -> set[str]:
    """What setup.sh installs on this machine, by requirements-debian.txt: all that apt knows."""
    if shutil.which("apt-get") is None:
        return set()
    unknown = BUILD / "understudy.without"
    without = unknown.read_text(encoding="utf-8").splitlines() if unknown.exists() else []
    rows = table(ROOT / "requirements-debian.txt")
    elsewhere = ("more-rehearse", "image")  # what the tests are not run with
    return {row[1] for row in rows if not row[0].startswith(elsewhere)} - set(without)


def wrong_skips(
    suite: str,
    cases_of_suite: Iterable[Case],
    stated: Mapping[str, int],
    lacks: Callable[[str], bool],
) -> Iterator[str]:
    """What is wrong with the skips of a suite.

    `stated` says how many cases are skipped where a need is missing, `lacks` whether it is. A case
    is skipped for what is stated only, and never for what setup.sh installs.
    """
    counts = Counter({need: 0 for need in stated if lacks(need)})
    for case in (c for c in cases_of_suite if c.outcome == "skipped"):
        if case.reason.startswith(needs.PREFIX):
            counts.update(case.reason.removeprefix(needs.PREFIX).split(", "))
        else:
            yield f"{case.name}: skipped without a need: {case.reason}"
    for need, count in sorted(counts.items()):
        if count and need in installed():
            yield f"{suite}: {count} cases skipped for {need}, which setup.sh installs"
        if count != (expected := stated.get(need, 0)):
            yield f"{suite}: {count} cases skipped for {need}, expected {expected}"


def main() -> int:
    ctest = ["ctest", "-j4", "--output-on-failure", "--no-tests=error"]
    pytest = [sys.executable, "-m", "pytest", "-n4", "--dist=worksteal", *sys.argv[1:]]
    suites = {
        "ctest": run("ctest", [*ctest, "--output-junit"], BUILD),
        "ctest-mpich": with_mpich(ctest),
        "pytest": run("pytest", [*pytest, "--junit-xml"], ROOT),
    }
    all_cases = [case for cases_of, _ in suites.values() for case in cases_of]
    wrong = []
    if not sys.argv[1:]:
        for suite, (cases_of, _) in suites.items():
            stated = {need: int(count) for of, need, count in table(SKIPS) if of == suite}
            wrong += wrong_skips(suite, cases_of, stated, lambda need: not needs.there(need))
    for kind in ("skipped", "failed"):
        for case in (c for c in all_cases if c.outcome == kind):
            print(f"{kind}: {case.name}: {case.reason}")
    for line in wrong:
        print(f"wrong skip: {line}")
    counts = (
        f"{sum(c.outcome == o for c in all_cases)} {o}" for o in ("passed", "failed", "skipped")
    )
    summary = ", ".join(counts)
    (BUILD / "test-summary.txt").write_text(summary + "\n", encoding="ascii")
    print(summary)
    return 0 if all(good for _, good in suites.values()) and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
