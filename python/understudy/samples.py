"""The real traces that `understudy run` shows: our own, and one of the PyPI package darshan."""

import importlib.metadata
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click

from understudy.paths import where

OWN = ("lammps_growth", "meep_sphere", "openfoam_dambreak_nm2")
PACKAGE = "darshan==3.5.0"
MACSIO = "shane_macsio"  # part of the file name of a MACSio run of 16 ranks


def traces(folder: Path) -> Iterator[tuple[str, Path]]:
    """(name of the workload, log) of each; `folder` is for what has to be downloaded."""
    macsio = _installed() or _downloaded(folder)
    if macsio is not None:
        yield "macsio", macsio
    else:
        click.echo(
            "understudy: without the log of MACSio: the Python package darshan is not available",
            err=True,
        )
    for name in OWN:
        yield name, where("traces") / f"{name}.darshan"


def _installed() -> Path | None:
    """The log in the installed package, which need not be importable."""
    try:
        files = importlib.metadata.files("darshan") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    logs = [Path(str(f.locate())) for f in files if MACSIO in f.name and f.suffix == ".darshan"]
    return logs[0] if logs and logs[0].is_file() else None


def _downloaded(folder: Path) -> Path | None:
    """The log out of the package's wheel; any interpreter's does, nothing of it is run."""
    kept = sorted(folder.glob(f"*{MACSIO}*.darshan"))
    if kept:
        return kept[0]
    folder.mkdir(parents=True, exist_ok=True)
    asked: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--no-deps",
        "--only-binary=:all:",
        "--platform=manylinux2014_x86_64",
        "--python-version=3.12",
        "--implementation=cp",
        "--abi=cp312",
        "--dest",
        folder,
        PACKAGE,
    ]
    click.echo(f"understudy: fetching {PACKAGE} for its log of MACSio", err=True)
    if subprocess.run(asked, capture_output=True, check=False).returncode:
        return None
    for wheel in folder.glob("darshan-*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if MACSIO in name and name.endswith(".darshan"):
                    log = folder / Path(name).name
                    log.write_bytes(archive.read(name))
                    return log
    return None
