"""The cases that ReFrame leaves in stage/: those that failed. What passed is moved to output/, so
that output/ alone has no failed case.
"""

from collections.abc import Iterator
from pathlib import Path

from understudy import producers
from understudy.contracts.run import RECORD_FILE, Identity, Place, Run

STAGE, OUTPUT = "stage", "output"
SCRIPTS = "rfm_*.sh"  # of the job or the build of a case
DEPTH = 4  # system, partition, environment, case


def beside(path: Path) -> Path | None:
    """The stage of the same sessions, of a folder output; None of any other."""
    name = path.resolve().name
    if name != OUTPUT and not name.startswith(f"{OUTPUT}-"):
        return None
    stage = path.resolve().with_name(STAGE + name.removeprefix(OUTPUT))
    return stage if any(_cases(stage)) else None


def lost(path: Path) -> Iterator[tuple[Path, Run]]:
    """The cases in a stage, or in a folder that has some, that left no record, each with a record
    that says so; a case that has passed since is in output."""
    for stage in [path, *sorted(path.glob(f"{STAGE}*"))]:
        if not stage.resolve().name.startswith(STAGE):
            continue
        for case in _cases(stage):
            if not any(case.rglob(RECORD_FILE)) and not _passed_since(stage, case):
                yield case, _record(stage, case)


def _cases(stage: Path) -> Iterator[Path]:
    for case in sorted(stage.glob("/".join("*" * DEPTH))):
        if case.is_dir() and any(case.glob(SCRIPTS)):
            yield case


def _passed_since(stage: Path, case: Path) -> bool:
    """ReFrame empties both folders of a case before it uses them."""
    output = stage.resolve().with_name(OUTPUT + stage.resolve().name.removeprefix(STAGE))
    return any((output / case.relative_to(stage)).glob("*"))


def _record(stage: Path, case: Path) -> Run:
    system, partition, environment, name = case.relative_to(stage).parts
    return producers.record(
        case / producers.MEASUREMENT_FILE,
        place=Place(system=system, partition=partition, environment=environment),
        identity=Identity(case=name),
        exit_status=None,
        failure=f"the case left no record; what it printed is in {case}",
        row={},
    )
