"""Applications that the check transfer runs (contract: schemas/case.schema.json)."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from understudy.contracts import schema
from understudy.errors import UnderstudyError
from understudy.paths import files

KIND = "case"
_HAS_MODULES = (
    "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requires:
    """Requirements of an application, and the packages that have them."""

    packages: str | None = None
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """How an application is started, and what its replica is made from."""

    name: str
    description: str
    ranks: int
    command: tuple[str, ...]
    environment: dict[str, str]
    inputs: Path | None
    original: Path | None
    mpi: bool = True
    prepare: tuple[str, ...] = ()
    requires: Requires = field(default_factory=Requires)

    def found(self) -> "Application":
        """With the interpreter of this host; an `UnderstudyError` says what is missing."""
        program, *arguments = self.command
        made_here = program.startswith("./")
        needed = [*self.requires.programs, *self.prepare[:1], *([] if made_here else [program])]
        for name in needed:
            if shutil.which(name) is None:
                raise UnderstudyError(f"{name}: not found on PATH; {self._needs_it}")
        if not self.requires.modules:
            return self
        for folder in os.get_exec_path():
            there = shutil.which(program, path=folder)
            if there is not None and _has_modules(there, self.requires.modules):
                prepare = tuple(there if word == program else word for word in self.prepare)
                return replace(self, command=(there, *arguments), prepare=prepare)
        names = " and ".join(self.requires.modules)
        raise UnderstudyError(f"{program}: none on PATH has {names}; {self._needs_it}")

    @property
    def _needs_it(self) -> str:
        more = f" ({self.requires.packages})" if self.requires.packages else ""
        return f"{self.name} needs it{more}"


def _has_modules(interpreter: str, names: tuple[str, ...]) -> bool:
    words = [interpreter, "-c", _HAS_MODULES, *names]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def names() -> list[str]:
    """The files of the plugin directory applications/, and of users'."""
    return list(files("applications", ".json"))


def get(name: str) -> Application:
    """The application of that name."""
    return load(files("applications", ".json")[name])


def load(path: Path) -> Application:
    """The application of a file; what it names must exist."""
    row = schema.read(path, "description of an application")
    kind = schema.kind_of(row, str(path))
    if kind != KIND:
        raise UnderstudyError(
            f"{path}: schema: expected understudy/{KIND}/1, found {row['schema']}"
        )
    schema.check(row, str(path))
    inputs = path.parent / row["inputs"] if row["inputs"] is not None else None
    if inputs is not None and not inputs.is_dir():
        raise UnderstudyError(f"{path}: inputs: {inputs} is not a directory")
    original = path.parent / row["original"] if "original" in row else None
    if original is not None and not original.is_file():
        raise UnderstudyError(f"{path}: original: {original} is not a file")
    values: dict[str, Any] = {key: row[key] for key in ("description", "ranks", "environment")}
    requires = row.get("requires", {})
    return Application(
        **values,
        name=path.stem,
        command=tuple(row["command"]),
        inputs=inputs,
        original=original,
        mpi=row.get("mpi", True),
        prepare=tuple(row.get("prepare", ())),
        requires=Requires(
            packages=requires.get("packages"),
            programs=tuple(requires.get("programs", ())),
            modules=tuple(requires.get("modules", ())),
        ),
    )
