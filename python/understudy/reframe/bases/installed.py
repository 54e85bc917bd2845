# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""A fixture of all checks where Spack provides the programs: their installation."""

from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import run_before, sanity_function
from reframe.core.exceptions import SanityError

from understudy.reframe import spack
from understudy.reframe.session import session

_installed: set[Path] = set()  # environments that this process has installed


class InstalledBySpack(rfm.CompileOnlyRegressionTest):
    """Installs the Spack environment of the partition, once for all partitions that use it.

    No specs are given: ReFrame would write them into the environment's spack.yaml.
    """

    descr = "spack install"
    sourcesdir = None
    build_system: Any = "Spack"

    @property
    def _environment(self) -> Path:
        environment = spack.folder_of(self.current_environ.name)
        assert environment is not None  # of which the partition's PATH is made
        return environment

    @run_before("compile")
    def choose_environment(self) -> None:
        session.note_installation(ended=False)
        if self._environment in _installed:
            self.build_system = "CustomBuild"
            self.build_system.commands = ["true"]
        else:
            self.build_system.environment = str(self._environment)

    @sanity_function
    def programs_are_there(self) -> bool:
        environment = self._environment
        for path in (spack.view(environment) / "bin" / spack.PLAYER, environment / spack.LOCK):
            if not path.is_file():
                raise SanityError(f"{path}: not found after spack install; expected `view: true`")
        spack.note_installed(environment / spack.LOCK)
        _installed.add(environment)
        session.note_installation(ended=True)
        return True
