"""Programs from a Spack environment: which one a system uses, and the lock that states them.

The extra `spack` of a partition names its environment. It is used where UNDERSTUDY_SPACK names the
directory of environments: the partition then has the ReFrame environment spack-NAME alone.
"""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from understudy.errors import UnderstudyError

VARIABLE = "UNDERSTUDY_SPACK"
PREFIX = "spack-"  # of the name of ReFrame's environment
SPACK, NEEDS, MPI = "spack", "needs", "mpi"  # as in `systems`
LOCK = "spack.lock"
PLAYER = "understudy-replay"


def asked() -> Path | None:
    """The directory of environments; None where the programs are those on PATH."""
    named = os.environ.get(VARIABLE)
    return Path(named).resolve() if named else None


def adopt(system: dict[str, Any], where: Path) -> list[dict[str, Any]]:
    """Have the partitions of a system file `where` use their Spack environments, if it is asked;
    the ReFrame environments for them."""
    folder, made = asked(), {}
    for partition in system["partitions"] if folder else ():
        name = partition["extras"].get(SPACK)
        if name is None:
            continue
        environment = folder_of(PREFIX + name)
        if environment is None or not (environment / "spack.yaml").is_file():
            raise UnderstudyError(
                f"{where}: partition {partition['name']!r}: extra {SPACK!r}: {name!r} is no "
                f"environment; expected {folder}/{name}/spack.yaml, as {VARIABLE} says"
            )
        partition["environs"] = [PREFIX + name]
        partition["prepare_cmds"] += [f'export PATH="{view(environment)}/bin:$PATH"']
        partition["extras"][NEEDS] = [*partition["extras"][NEEDS], "spack"]
        made[name] = {
            "name": PREFIX + name, "target_systems": [system["name"]], "features": [MPI, SPACK],
        }  # fmt: skip
    return list(made.values())


def folder_of(environment: str) -> Path | None:
    """The folder of a Spack environment by the name of its ReFrame environment."""
    folder = asked()
    name = environment.removeprefix(PREFIX)
    return folder / name if folder and name != environment else None


def view(environment: Path) -> Path:
    """Where an environment shows its programs."""
    return environment / ".spack-env" / "view"


def player(environment: str) -> Path | None:
    """The player in a ReFrame environment, whose methods may differ from those of the one on PATH;
    None if the programs are those on PATH, or before the environment is installed."""
    folder = folder_of(environment)
    found = view(folder) / "bin" / PLAYER if folder else None
    return found if found and found.is_file() else None


def lock(environment: str) -> Path | None:
    """The lock file of the programs in a ReFrame environment: of its Spack environment, or of the
    one that is activated, if the player on PATH is from it."""
    folder = folder_of(environment)
    if folder is None and (activated := os.environ.get("SPACK_ENV")):
        found = shutil.which(PLAYER)
        if found and Path(found).is_relative_to(activated):
            folder = Path(activated)
    return folder / LOCK if folder and (folder / LOCK).is_file() else None


def keep(lock: Path, folder: Path) -> str:
    """The SHA-256 of a lock file, of which the folder of a session keeps one copy."""
    content = lock.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    kept = folder / LOCK
    if not kept.exists():
        kept.write_bytes(content)
    elif kept.read_bytes() != content:  # installed anew during the session
        (folder / f"{LOCK}.{sha256}").write_bytes(content)
    return sha256
