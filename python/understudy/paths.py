"""Where things are: the plugin directories, the player, and the directory for output.

A checkout, a prefix of `cmake --install` (share/understudy) and a wheel (understudy/data) hold the
same directories. Nothing else in the package builds the path of one.
"""

import os
import shutil
import sys
from pathlib import Path

from understudy import studies
from understudy.errors import UnderstudyError

_PACKAGE = Path(__file__).resolve().parent
_DATA = _PACKAGE / "data"
ROOT = _DATA if _DATA.is_dir() else _PACKAGE.parents[1]
# Relative paths of variables start here. ReFrame imports its configuration in the directory of the
# configuration, and only the shell's variable tells the directory that it was started in.
_START = Path(("reframe" in sys.modules and os.environ.get("PWD")) or Path.cwd())

# Below ROOT; those of SITE may stand below each directory of UNDERSTUDY_PATH too, by their kind.
_KINDS = {
    "acceptance": "acceptance",
    "applications": "applications",
    "checks": "checks",
    "cmake": "cmake",
    "config": "configs/settings.py",
    "dashboard": "configs/grafana/understudy.json",
    "figures": "reports/figures",
    "proxies": "proxies",
    "references": "configs/references",
    "schemas": "schemas",
    "simulations": "simulations",
    "skeleton": "skeleton",
    "style": "reports/understudy.mplstyle",
    "systems": "configs/systems",
    "templates": "reports/templates",
    "traces": "traces",
    "workloads": "workloads",
}
SITE = (
    "acceptance",
    "applications",
    "checks",
    "figures",
    "references",
    "simulations",
    "systems",
    "workloads",
)
SITE_VARIABLE = "UNDERSTUDY_PATH"
SITE_FOLDER = "understudy-site"  # what `understudy system new` makes
# Directories of one kind only.
_VARIABLES = {"simulations": "UNDERSTUDY_SIMULATIONS", "workloads": "UNDERSTUDY_WORKLOADS"}
OUTPUT_VARIABLE = "UNDERSTUDY_OUTPUT"
RECORDS_VARIABLE = "UNDERSTUDY_RECORDS"


def kinds() -> list[str]:
    """Names for `where`: those that this installation has, with its studies."""
    return [kind for kind in _KINDS if _ours(kind)]


def _ours(kind: str) -> list[Path]:
    """The directories (or the file) of a kind in the core and in studies."""
    core = ROOT / _KINDS[kind]
    return [core] * core.exists() + studies.directories(kind)


def where(kind: str) -> Path:
    """Our own directory (or file) of a kind, else the one of a study."""
    if kind not in _KINDS:
        raise UnderstudyError(f"kind {kind!r}: expected one of {', '.join(_KINDS)}")
    for path in _ours(kind):
        return path
    raise UnderstudyError(
        f"{ROOT / _KINDS[kind]}: not found; this installation of understudy is incomplete: "
        "expected it in a checkout, or installed by pip or by cmake --install"
    )


def directories(kind: str) -> list[Path]:
    """Our own directory of a kind, then those of studies and of users."""
    folders = _ours(kind) or [where(kind)]
    if kind in SITE:
        folders += [site / kind for site in sites() if (site / kind).is_dir()]
    if kind in _VARIABLES:
        folders += _listed(_VARIABLES[kind])
    return list(dict.fromkeys(folders))


def files(kind: str, suffix: str) -> dict[str, Path]:
    """Every file of a kind by its name without the suffix, sorted by name."""
    paths: dict[str, Path] = {}
    for folder in directories(kind):
        for path in folder.glob(f"*{suffix}"):
            name = path.name.removesuffix(suffix)
            if name in paths:
                raise UnderstudyError(
                    f"{path}: {kind}: the name {name!r} is taken by {paths[name]}; rename one"
                )
            expect_file(path)
            paths[name] = path
    return dict(sorted(paths.items()))


def expect_file(path: Path) -> None:
    """An UnderstudyError for a plugin that is no file: a FIFO would be waited for."""
    if not path.is_file():
        raise UnderstudyError(f"{path}: is no regular file; expected a plugin")


def is_checkout() -> bool:
    """False where pip or CMake installed the package: nothing is written below ROOT there."""
    return (ROOT / "pyproject.toml").is_file()


def output() -> Path:
    """The directory for all output: UNDERSTUDY_OUTPUT, else reports/out of a checkout, else
    understudy-out in the working directory."""
    if named := os.environ.get(OUTPUT_VARIABLE):
        return _START / named
    return ROOT / "reports" / "out" if is_checkout() else _START / "understudy-out"


def records() -> Path:
    """The folder that keeps the record of every run: UNDERSTUDY_RECORDS, else records/ of the
    directory for output."""
    if named := os.environ.get(RECORDS_VARIABLE):
        return _START / named
    return output() / "records"


def made_output(name: str) -> Path:
    """A directory of that name in the directory for output, created where it does not exist."""
    folder = output() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnderstudyError(
            f"{folder}: cannot be created: {error.strerror}; {OUTPUT_VARIABLE} names another "
            "directory for output"
        ) from None
    return folder


def program(name: str) -> str:
    """A program of the project: from PATH, as jobs find it, else of the build of this checkout."""
    if program_path := shutil.which(name) or shutil.which(name, path=str(ROOT / "build" / "bin")):
        return program_path
    raise UnderstudyError(f"{name}: not found on PATH; {how_to_build()}")


def how_to_build() -> str:
    """How to build missing programs: only a checkout has a Makefile."""
    if is_checkout():
        return "build it with make build, then source setup-env.sh"
    apart = [f"{base}" for base in studies.bases().values() if ROOT not in base.parents]
    more = f" -DUND_STUDIES='{';'.join(apart)}'" if apart else ""
    build = f"cmake -S {ROOT} -B build{more} && cmake --build build"
    return f"build it with {build}, then add build/bin to PATH"


def command() -> Path:
    """The Python script that starts this very `understudy`, from any directory and environment."""
    return _PACKAGE / "__main__.py"


def sites() -> list[Path]:
    """The directories of a site that UNDERSTUDY_PATH lists; where it is not set, understudy-site
    of the working directory, if it is the user's: its files are run."""
    if SITE_VARIABLE not in os.environ:
        folder = (_START / SITE_FOLDER).resolve()
        there = any((folder / kind).is_dir() for kind in SITE)
        return [folder] if there and folder.stat().st_uid in (os.geteuid(), 0) else []
    sites = _listed(SITE_VARIABLE)
    for site in sites:
        if not any((site / kind).is_dir() for kind in SITE):
            raise UnderstudyError(
                f"{SITE_VARIABLE}: {site}: expected at least one directory of {', '.join(SITE)}"
            )
    return sites


def _listed(variable: str) -> list[Path]:
    """The directories that a variable lists, separated by colons."""
    folders = [(_START / p).resolve() for p in os.environ.get(variable, "").split(":") if p]
    for folder in folders:
        if not folder.is_dir():
            raise UnderstudyError(f"{variable}: {folder}: no such directory")
    return folders
