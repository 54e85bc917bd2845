"""The words of a system file, and how configs/systems/ becomes one configuration.

A logical partition is where processes run and which file system they write to. What it can do is
a feature, where and how much is an extra. Each file of the folder defines `system` and
`environments`, both as ReFrame's configuration has them.
"""

import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from understudy import launch
from understudy.errors import UnderstudyError, refuse_exit
from understudy.paths import expect_file
from understudy.reframe import spaces, spack

# A variable with the name of a system: this process runs in an allocation of its batch system, so
# that its cases are no jobs of their own. The launchers stay.
ALLOCATION = "UNDERSTUDY_ALLOCATION"

# Features.
MPI = "mpi"  # MPI programs can be started
MPICH = "mpich"  # of an environment: its MPI is of the family of MPICH
SHARED = "shared"  # every node of the partition sees the scratch directory
LUSTRE = "lustre"
STRIPING = "striping"  # users can set the layout of files

# Extras of every partition.
SCRATCH = "scratch"  # directory for data; the job's shell expands variables in it
TYPE = "type"  # tmpfs, lustre, … as the player names it; disk: any that is not memory
MAX_NODES = "max_nodes"
RANKS_PER_NODE = "ranks_per_node"  # most ranks on one node; above its cores where that is wanted
NEEDS = "needs"  # programs that the submitting host must have for a real run
MAX_BYTES = "max_bytes"  # optional: a larger workload is skipped here
MAX_SECONDS = "max_seconds"  # optional: the longest time that a job may ask for
NODE_MEMORY = "node_memory_bytes"  # optional: to warn of cases that fit into it
SLOWEST = "slowest_bytes_per_s"  # optional: of the file system, for time limits
SPACK = "spack"  # optional: the Spack environment with the programs; see `spack`
SPACES = "spaces"  # optional: what sweeps visit here; see `spaces`
MANDATORY = {SCRATCH: str, TYPE: str, MAX_NODES: int, RANKS_PER_NODE: int, NEEDS: list}

# Extras of partitions with the feature `striping`; None where the value is not known.
STRIPE_COUNT = "stripe_count"  # of a new file, where nothing is asked
STRIPE_COUNT_MAX = "stripe_count_max"  # object storage targets (OSTs) of the file system
MANDATORY_WITH_STRIPING = {STRIPE_COUNT: int | None, STRIPE_COUNT_MAX: int | None}

# Extra of partitions without that feature, for a reason that a person should read: cases with a
# stripe count are then listed, and skipped with this reason. Without it they are left out.
NO_STRIPING = "no_striping"

SLOWEST_BYTES_PER_S = 20e6  # of a file system that does not state it
# Job scripts run in a bash that is no login shell, where `module` need not be defined: the files
# that define it, by Cray's and other sites' conventions.
FIND_MODULES = (
    'type module >/dev/null 2>&1 || for init in "${MODULESHOME:-/opt/modules/default}/init/bash" '
    '/etc/profile.d/{modules,lmod}.sh; do if [ -r "$init" ]; then . "$init"; break; fi; done'
)

NO_LIMIT = sys.maxsize  # of MAX_NODES, where no number of nodes is known

Row = dict[str, Any]  # a section of ReFrame's configuration


_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")


def per_filesystem(nodes: Row, **file_systems: Row) -> list[Row]:
    """One logical partition per file system of the same nodes, called by its keyword.

    A file system may give features, which are added to those of the nodes, and extras likewise.
    """
    return [
        {
            **nodes,
            **section,
            "name": name,
            "features": [*nodes.get("features", ()), *section.get("features", ())],
            "extras": {**nodes.get("extras", {}), **section.get("extras", {})},
        }
        for name, section in file_systems.items()
    ]


def expanded(scratch: str) -> tuple[Path, str]:
    """A scratch directory as the shell of a job expands it, a variable that is not set to nothing,
    and what messages call it."""
    names = re.findall(_VARIABLE, scratch)
    path = re.sub(_VARIABLE, lambda match: os.environ.get(match[1], ""), scratch)
    unset = [name for name in dict.fromkeys(names) if name not in os.environ]
    said = f" ({', '.join(unset)} {'is' if len(unset) == 1 else 'are'} not set)" if unset else ""
    return Path(path), path + said


def quoted(scratch: str) -> str:
    """A scratch directory as a word of the shell: variables are expanded, one that is not set ends
    the job, and all else is itself."""
    parts = re.split(f"({_VARIABLE.pattern})", scratch)
    whole, rest = "", iter(parts)
    for text in rest:
        whole += shlex.quote(text) if text else ""
        variable, name = next(rest, ""), next(rest, "")
        whole += f'"${{{name}:?is not set}}"' if variable else ""
    return whole


def slowest_bytes_per_s(partition: Any) -> float:
    """The slowest bandwidth that is expected of the file system of one of ReFrame's partitions."""
    return float(partition.extras.get(SLOWEST, SLOWEST_BYTES_PER_S))


def faults(partition: Row) -> Iterable[str]:
    """Messages on extras that are missing or have the wrong type."""
    extras = partition.get("extras", {})
    wanted: dict[str, Any] = dict(MANDATORY)
    if STRIPING in partition.get("features", ()):
        wanted |= MANDATORY_WITH_STRIPING
    elif NO_STRIPING in extras:
        wanted[NO_STRIPING] = str
    for name, kind in wanted.items():
        if name not in extras or not isinstance(extras[name], kind):
            have = repr(extras[name]) if name in extras else "nothing"
            yield f"extra {name!r}: expected {getattr(kind, '__name__', kind)}, got {have}"
    if extras.get(SCRATCH) == "":
        yield f"extra {SCRATCH!r}: expected a directory, got ''"
    if not isinstance(extras.get(SPACK, ""), str):
        yield f"extra {SPACK!r}: expected str, got {extras[SPACK]!r}"
    longest = extras.get(MAX_SECONDS, 1)
    if not isinstance(longest, int) or isinstance(longest, bool) or longest < 1:
        yield f"extra {MAX_SECONDS!r}: expected seconds, at least 1, got {longest!r}"
    slowest = extras.get(SLOWEST, 1)
    if not isinstance(slowest, int | float) or isinstance(slowest, bool) or not slowest > 0:
        yield f"extra {SLOWEST!r}: expected bytes/s above 0, got {slowest!r}"
    memory = extras.get(NODE_MEMORY, 1)
    if not isinstance(memory, int) or isinstance(memory, bool) or memory < 1:
        yield f"extra {NODE_MEMORY!r}: expected bytes above 0, got {memory!r}"
    yield from (f"extra {SPACES!r}: {fault}" for fault in spaces.faults(extras.get(SPACES, {})))


def _uses_modules(*sections: Row) -> bool:
    """True if partitions or environments load modules, by ReFrame or by commands of their own."""
    return any(
        section.get("modules")
        or any(re.match(r"\s*(module|ml)\b", line) for line in section.get("prepare_cmds", ()))
        for section in sections
    )


def _within(partition: Row) -> Row:
    """A partition as it is within an allocation: nothing is submitted."""
    submitting = ("access", "resources", "sched_options")
    kept = {key: value for key, value in partition.items() if key not in submitting}
    return kept | {"scheduler": "local", "extras": partition["extras"] | {NEEDS: []}}


def load(folders: Iterable[Path]) -> tuple[list[Row], list[Row]]:
    """Systems and environments of all files of the folders, in the order of their names."""
    systems: list[Row] = []
    environments: list[Row] = []
    origin: dict[str, Path] = {}  # of each system, by its name
    for path in (path for folder in folders for path in sorted(folder.glob("*.py"))):
        expect_file(path)
        with refuse_exit(path):
            definitions = runpy.run_path(str(path))
        for key in ("system", "environments"):
            if key not in definitions:
                raise UnderstudyError(
                    f"{path}: {key}: missing; expected as in ReFrame's configuration"
                )
        system = definitions["system"]
        for partition in system["partitions"]:
            for fault in faults(partition):
                raise UnderstudyError(f"{path}: partition {partition['name']!r}: {fault}")
            # A module that cannot be loaded ends the job, not what would run without it.
            with_modules = _uses_modules(partition, *definitions["environments"])
            modules = [FIND_MODULES] if with_modules else []
            here = launch.lines() if partition.get("scheduler") == "local" else ()
            commands = partition.get("prepare_cmds", ())
            partition["prepare_cmds"] = [*modules, "set -e", *here, *commands]
        name = system["name"]
        if name == os.environ.get(ALLOCATION):
            system["partitions"] = [*map(_within, system["partitions"])]
            system["max_local_jobs"] = 1
        if name in origin:
            raise UnderstudyError(
                f"{path}: the system {name!r} is defined by {origin[name]} too; rename one"
            )
        origin[name] = path
        systems.append(system)
        environments += [*definitions["environments"], *spack.adopt(system)]
    return systems, environments
