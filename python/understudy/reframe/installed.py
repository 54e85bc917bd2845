# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""A fixture of all checks where Spack provides the programs: their installation."""

from typing import Any

import reframe as rfm
from reframe.core.builtins import run_before, sanity_function
from reframe.core.exceptions import SanityError

from understudy.reframe import spack


class InstalledBySpack(rfm.CompileOnlyRegressionTest):
    """Installs the Spack environment of the partition, which does nothing where it is installed.

    No specs are given: ReFrame would write them into the environment's spack.yaml.
    """

    descr = "spack install"
    sourcesdir = None
    build_system: Any = "Spack"

    @run_before("compile")
    def choose_environment(self) -> None:
        self.build_system.environment = str(spack.folder_of(self.current_environ.name))

    @sanity_function
    def programs_are_there(self) -> bool:
        environment = spack.folder_of(self.current_environ.name)
        assert environment is not None  # of which the partition's PATH is made
        for path in (spack.view(environment) / "bin" / spack.PLAYER, environment / spack.LOCK):
            if not path.is_file():
                raise SanityError(f"{path}: not found after spack install; expected `view: true`")
        return True
