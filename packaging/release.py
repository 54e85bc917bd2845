"""The distributions of a commit in a directory, and the line of its version for Spack's recipes.

    python packaging/release.py [--commit COMMIT] [--only-source] DIRECTORY

The source distribution has the same bytes wherever it is made: from what is committed, with the
commit's date, by the hatchling of requirements.txt. So the SHA-256 of a release can be stated
before it is published, but only in a later commit than that of the release.
"""

import argparse
import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "understudy"


def git(*words: str) -> str:
    """What git prints on the repository of the project."""
    done = subprocess.run(["git", "-C", str(ROOT), *words], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The files of a commit; of a copy without git, those that are here."""
    if not (ROOT / ".git").exists():
        yield ROOT
        return
    with tempfile.TemporaryDirectory() as folder:
        git("worktree", "add", "--quiet", "--force", "--detach", f"{folder}/{NAME}", commit)
        try:
            yield Path(folder, NAME)
        finally:
            git("worktree", "remove", "--force", f"{folder}/{NAME}")


def source(root: Path, folder: Path, commit: str) -> Path:
    """The source distribution of a checkout of a commit."""
    dated = (ROOT / ".git").exists()
    epoch = {"SOURCE_DATE_EPOCH": git("show", "-s", "--format=%ct", commit)} if dated else {}
    return build(root, folder, "sdist", **epoch)


def build(project: Path, folder: Path, kind: str, **variables: str) -> Path:
    """The distribution that hatchling makes of a project."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder.resolve())]
    done = subprocess.run(
        command,
        cwd=project,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"understudy: {shlex.join(command)}:\n{done.stdout}")
    return folder / Path(done.stdout.split()[-1]).name


def version_line(archive: Path) -> str:
    """The directive of a recipe for a source distribution."""
    version = archive.name.removeprefix(f"{NAME}-").removesuffix(".tar.gz")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return f'version("{version}", sha256="{digest}")'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--only-source", action="store_true", help="without the wheels")
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    if (ROOT / ".git").exists() and git("status", "--porcelain"):
        print("understudy: changes that are not committed are left out", file=sys.stderr)
    with checkout(arguments.commit) as root:
        archive = source(root, arguments.directory, arguments.commit)
        wheels = [] if arguments.only_source else [root, *sorted(root.glob("studies/*/"))]
        for project in wheels:
            build(project, arguments.directory, "wheel")
    print(version_line(archive))


if __name__ == "__main__":
    main()
