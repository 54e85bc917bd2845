"""Studies: distributions with commands, readers, producers, figures and checks of their own.

A study is a package `understudy_<name>`: in a checkout and in a prefix of `cmake --install` in
studies/<name>, else its distribution names it in the entry point group `understudy.studies`. It
may have the plugin directories `commands`, `readers` and `producers`, and a module `page` with an
`ADDITION` (`understudy.judge.page.additions`). Directories of `paths.SITE` stand beside the
package in studies/<name>, and in its directory `data` in a wheel.
"""

import pkgutil
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from understudy.errors import UnderstudyError, refuse_exit
from understudy.messages import tell
from understudy.release import version

GROUP = "understudy.studies"
BESIDE = Path(__file__).resolve().parents[2] / "studies"


@cache
def packages() -> dict[str, Path]:
    """The directory of each study's package by the name of the package. Those of a checkout are
    imported, without their modules: their directories are not on the module path."""
    folders = {path.parent.name: path.parent for path in BESIDE.glob("*/understudy_*/__init__.py")}
    for name, folder in folders.items():
        if name not in sys.modules:
            _import_from(folder)
    for point in entry_points(group=GROUP):
        if point.value in folders:
            continue
        try:
            spec = find_spec(point.value)
        except (ImportError, ValueError):
            spec = None
        if spec is None or spec.origin is None:
            tell(
                f"study {point.name}: left out, since its package {point.value} is not there; "
                f"install it again, or uninstall {point.dist.name if point.dist else point.name}"
            )
            continue
        if point.dist and point.dist.version != version():
            tell(
                f"{point.dist.name} {point.dist.version}: expected {version()}, the version of "
                "understudy; install both of one version"
            )
        folders[point.value] = Path(spec.origin).parent
    return dict(sorted(folders.items()))


def _import_from(folder: Path) -> None:
    spec = spec_from_file_location(
        folder.name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec and spec.loader
    sys.modules[folder.name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[folder.name])


@cache
def plugins(kind: str, core: str, folders: tuple[str, ...]) -> dict[str, str]:
    """The full name of each module of a plugin directory, the package `core` in `folders` and the
    directory of that kind in each study, by its short name. A name that is taken is told, and left
    out."""
    places = [(core, folder) for folder in folders]
    places += [(f"{package}.{kind}", str(folder / kind)) for package, folder in packages().items()]
    modules: dict[str, str] = {}
    for package, folder in places:
        for module in pkgutil.iter_modules([folder]):
            if module.name.startswith("_"):
                continue
            if module.name in modules:
                tell(
                    f"{package}.{module.name}: left out, since {modules[module.name]} has its name"
                )
                continue
            modules[module.name] = f"{package}.{module.name}"
    return modules


def load(module: str, what: str) -> ModuleType:
    """Import a plugin, which messages call `what`. Whatever one of a study raises becomes an
    UnderstudyError."""
    with refuse_exit(what):
        try:
            return import_module(module)
        except UnderstudyError:
            raise
        except Exception as error:
            if module.startswith("understudy."):
                raise
            why = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise UnderstudyError(f"{module}: cannot be loaded: {why}") from None


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
    return [
        load(f"{package}.{name}", f"study {package}")
        for package, folder in packages().items()
        if (folder / f"{name}.py").is_file()
    ]
