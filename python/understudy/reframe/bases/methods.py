"""The I/O methods of the player on this host, as `understudy-replay --list` states them."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from understudy.errors import UnderstudyError
from understudy.paths import how_to_build
from understudy.reframe.session.session import exit_on_error

PLAYER = "understudy-replay"
MOVES_NO_BYTES = "null"
AVAILABLE, UNAVAILABLE, NOT_FOR = "available", "unavailable: ", "not for "
BUILT = "built"  # in the reason why a build of the player lacks a method; not in one of the system
COLLECTIVE = "collective calls"


@exit_on_error()
def names() -> list[str]:
    """The methods that move bytes, whether or not this build of the player has their library.

    For the axis of a check: without a player the session ends here.
    """
    return sorted(name for name in _listed(player()) if name != MOVES_NO_BYTES)


@exit_on_error()
def choices() -> list[str]:
    """All that the player lists."""
    return sorted(_listed(player()))


def lacks(method: str, program: Path | None = None) -> str | None:
    """Why a player, by default that on PATH, cannot use a method; None if it can."""
    words = _listed(str(program or player())).get(method)
    if words is None:
        return f"{method}: not a method of the player"
    reason = words.removeprefix(UNAVAILABLE)
    return None if reason == words else f"{method}: {reason}"


def cannot_play(method: str) -> frozenset[str]:
    """The kinds of streams that the player cannot play with a method, as the contract names them:
    update, reopen (of append), rewrite, extends, flood, write_through."""
    clauses = _listed(player()).get(method, "").split(", ")
    return frozenset(
        kind
        for clause in clauses
        if clause.startswith(NOT_FOR)
        for kind in clause.removeprefix(NOT_FOR).split()
    )


def is_collective(method: str) -> bool:
    """True if the player makes collective calls with a method, which hints for MPI-IO concern."""
    return COLLECTIVE in _listed(player()).get(method, "").split(", ")


def player() -> str:
    """The path of the player; an UnderstudyError if it is not on PATH."""
    path = _on_path(os.environ.get("PATH", ""))
    if path is None:
        raise UnderstudyError(
            f"{PLAYER} is not on PATH, and the checks ask it for its methods; {how_to_build()}"
        )
    return path


@cache
def _on_path(path: str) -> str | None:
    return shutil.which(PLAYER, path=path or None)


@cache
def _listed(program: str) -> dict[str, str]:
    """Properties of each method in the player's list, by name."""
    done = subprocess.run([program, "--list"], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise UnderstudyError(
            f"{program} --list: failed with exit status {done.returncode}: "
            f"{said[-1] if said else 'it printed nothing'}"
        )
    rows = [line.partition(" ") for line in done.stdout.splitlines() if line.strip()]
    properties = {name: words.strip() for name, _, words in rows}
    states = (AVAILABLE, UNAVAILABLE)
    if not properties or not all(w.startswith(states) for w in properties.values()):
        raise UnderstudyError(
            f"{program} --list: expected a line '<method> available' or '<method> unavailable: "
            f"<reason>' for each method, got {done.stdout.strip()[:200]!r}"
        )
    return properties
