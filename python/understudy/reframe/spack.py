"""Programs from a Spack environment: which one a system uses, and the lock that states them.

The extra `spack` of a partition names its environment. It is used where UNDERSTUDY_SPACK names the
directory of environments: the partition then has the ReFrame environment spack-NAME alone.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from understudy.errors import UnderstudyError
from understudy.files import read_bytes

VARIABLE = "UNDERSTUDY_SPACK"
PREFIX = "spack-"  # of the name of ReFrame's environment
SPACK, NEEDS, MPI = "spack", "needs", "mpi"  # as in `systems`
LOCK = "spack.lock"
PLAYER = "understudy-replay"
_installed: dict[Path, str] = {}  # SHA-256 of the locks that this process has installed
_PLAIN = re.compile(r"[\w./+@%=,~-]+", re.ASCII)  # paths that need no quoting in PATH and scripts


def asked() -> Path | None:
    """The directory of environments; None where the programs are those on PATH."""
    named = os.environ.get(VARIABLE)
    folder = Path(named).resolve() if named else None
    if folder and not _PLAIN.fullmatch(str(folder)):
        raise UnderstudyError(
            f"{VARIABLE}: {str(folder)!r}: expected a path of letters, digits and any of "
            "_ . / + @ % = , ~ -, which ReFrame, Spack and PATH take as it is"
        )
    return folder


def adopt(system: dict[str, Any]) -> list[dict[str, Any]]:
    """Have the partitions of a system use their Spack environments, if it is asked; the ReFrame
    environments for them."""
    folder, environments = asked(), {}
    for partition in system["partitions"] if folder else ():
        name = partition["extras"].get(SPACK)
        if name is None:
            continue
        partition["environs"] = [PREFIX + name]
        partition["prepare_cmds"] += [f'export PATH="{view(folder / name)}/bin:$PATH"']
        partition["extras"][NEEDS] = [*partition["extras"][NEEDS], "spack"]
        environments[name] = {
            "name": PREFIX + name,
            "target_systems": [system["name"]],
            "features": [MPI, SPACK],
        }
    return list(environments.values())


def expect(partitions: Iterable[Any]) -> None:
    """An UnderstudyError where a partition of the current system has no Spack environment."""
    folder = asked()
    for partition in partitions if folder else ():
        name = partition.extras.get(SPACK)
        if name is not None and not (folder / name / "spack.yaml").is_file():
            raise UnderstudyError(
                f"{partition.fullname}: extra {SPACK!r}: {name!r} is no environment; expected "
                f"{folder}/{name}/spack.yaml, as {VARIABLE} says"
            )


def guard(environment: str) -> list[str]:
    """Lines of a job that end it where another player would run than that of its environment."""
    folder = folder_of(environment)
    if folder is None:
        return []
    player_path = view(folder) / "bin" / PLAYER
    said = f"{player_path}: not found, or not executable, on this node; found "
    return [
        f'[ "$(command -v {PLAYER})" = {player_path} ] || '
        f'{{ echo "understudy: {said}$(command -v {PLAYER})" >&2; exit 1; }}'
    ]


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
    player_path = view(folder) / "bin" / PLAYER if folder else None
    return player_path if player_path and player_path.is_file() else None


def lock(environment: str) -> Path | None:
    """The lock file of the programs in a ReFrame environment: of its Spack environment, or of the
    one that is activated, if the player on PATH is from it."""
    folder = folder_of(environment)
    if folder is None and (activated := os.environ.get("SPACK_ENV")):
        player_path = shutil.which(PLAYER)
        if player_path and Path(player_path).is_relative_to(activated):
            folder = Path(activated)
    return folder / LOCK if folder and (folder / LOCK).is_file() else None


def note_installed(lock: Path) -> None:
    """Note which lock this process has installed."""
    _installed[lock] = _sha256(lock)


def changed(environment: str) -> str | None:
    """Why nobody knows which programs a run of a ReFrame environment has used: another lock than
    the one that was installed."""
    lock_path = lock(environment)
    if lock_path is None or _installed.get(lock_path) in (None, _sha256(lock_path)):
        return None
    return f"{lock_path}: changed since it was installed (SHA-256 {_installed[lock_path]})"


def keep(lock: Path, folder: Path) -> str:
    """The SHA-256 of a lock file, of which the folder of a session keeps a copy."""
    content, sha256 = read_bytes(lock), _sha256(lock)
    kept = folder / LOCK
    if not kept.exists():
        kept.write_bytes(content)
    elif read_bytes(kept) != content:  # of another environment, or installed anew
        (folder / f"{LOCK}.{sha256}").write_bytes(content)
    return sha256


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()
