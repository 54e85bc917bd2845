"""Studies: distributions with commands, readers, producers, figures and checks of their own.

A study is a package `understudy_<name>`: in a checkout and in a prefix of `cmake --install` in
studies/<name>, else its distribution names it in the entry point group `understudy.studies`. It
may have the plugin directories `commands`, `readers` and `producers`, and a module `page` with an
`ADDITION` (`understudy.judge.page.additions`). Directories of `paths.SITE` stand beside the
package in studies/<name>, and in its directory `data` in a wheel.
"""

import sys
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from understudy.errors import UnderstudyError, refuse_exit

GROUP = "understudy.studies"
BESIDE = Path(__file__).resolve().parents[2] / "studies"


@cache
def packages() -> dict[str, Path]:
    """The directory of each study's package by the name of the package. None is imported."""
    found = {folder.name: folder for folder in sorted(BESIDE.glob("*/understudy_*"))}
    for folder in found.values():
        if str(folder.parent) not in sys.path:
            sys.path.append(str(folder.parent))
    for point in entry_points(group=GROUP):
        if point.value in found:
            continue
        spec = find_spec(point.value)
        if spec is None or spec.origin is None:
            raise UnderstudyError(
                f"study {point.name}: its package {point.value} is not there; install it again, "
                f"or uninstall {point.dist.name if point.dist else point.name}"
            )
        found[point.value] = Path(spec.origin).parent
    return dict(sorted(found.items()))


def folders(kind: str) -> list[tuple[str, Path]]:
    """The plugin directories of a kind in the packages of studies, each with its module's name."""
    return [
        (f"{package}.{kind}", folder / kind)
        for package, folder in packages().items()
        if (folder / kind).is_dir()
    ]


def bases() -> dict[str, Path]:
    """Where the files of each study are, by its name without `understudy_`."""
    return {
        package.removeprefix("understudy_"): data if (data := p / "data").is_dir() else p.parent
        for package, p in packages().items()
    }


def directories(path: str) -> list[Path]:
    """That path below the files of each study that has it."""
    return [base / path for base in bases().values() if (base / path).exists()]


def modules(name: str) -> list[ModuleType]:
    """The module of that name of each study that has one."""
    found = []
    for package, folder in packages().items():
        if (folder / f"{name}.py").is_file():
            with refuse_exit(f"study {package}"):
                found.append(import_module(f"{package}.{name}"))
    return found
