"""The packages of the checkout, or of the clone that `spack repo add <git address>` makes: their
repository, and what a development build is made of, in place of Spack's own answer: the whole
checkout, which every session changes whose output is in it."""

from collections.abc import Iterable, Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
CACHE = "__pycache__"  # changes its directory, and is no source


def changed(package, names: Iterable[str]) -> bool:
    """Whether one of `names` in the source directory is newer than what Spack installed of it; a
    directory counts as one of its files, since it tells what was removed."""
    root = Path(package.spec.variants["dev_path"].value)
    installed_s = Path(package.spec.prefix, ".spack", "spec.json").stat().st_mtime
    return any(_newer(root / name, installed_s) for name in names)


def _newer(path: Path, since_s: float) -> bool:
    return any(source.lstat().st_mtime > since_s for source in _sources(path))


def _sources(path: Path) -> Iterator[Path]:
    """A file, or a directory with all below it."""
    if path.is_symlink() or not path.is_dir():
        if path.exists():
            yield path
        return
    entries = list(path.iterdir())
    if not any(entry.name == CACHE for entry in entries):
        yield path
    for entry in entries:
        if entry.name != CACHE:
            yield from _sources(entry)
