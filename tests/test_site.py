"""The site of the documentation: complete, without dead links, and nothing from elsewhere."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from understudy.cli import main
from understudy.paths import ROOT

COPIED = ("applications", "docs", "schemas", "checks", "traces", "python", "configs")


def build(root: Path, to: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(to)]
    return subprocess.run(
        [*command, "--config-file", str(root / "mkdocs.yml")],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1"},
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def groups(command: click.Command, name: str) -> list[str]:
    if not isinstance(command, click.Group):
        return [name]
    context = click.Context(command)
    commands = ((sub, command.get_command(context, sub)) for sub in command.list_commands(context))
    inner = [
        group
        for sub, inner_command in commands
        if inner_command
        for group in groups(inner_command, f"{name} {sub}")
    ]
    return [name, *inner]


def test_the_reference_has_every_command_and_key(site: Path) -> None:
    text = (site / "reference/commands.html").read_text(encoding="utf-8")
    names = groups(main, "understudy")
    assert len(names) > 40
    for name in names:
        assert f'id="{name.replace(" ", "-")}"' in text, name
    workload = (site / "reference/workload.html").read_text(encoding="utf-8")
    for key in json.loads((ROOT / "schemas/workload.schema.json").read_text())["properties"]:
        assert f"<code>{key}</code>" in workload, key
    checks = (site / "reference/checks.html").read_text(encoding="utf-8")
    for name in ("fsync", "campaign", "canary", "workload"):
        assert f"<code>{name}</code>" in checks, name


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="?(https?:|//)', text)
        loaded += re.findall(
            r'<link[^>]*rel="?(?:stylesheet|preload)[^>]*href="?(https?:|//)', text
        )
        assert not loaded, page


def test_the_search_needs_no_server(site: Path) -> None:
    """A browser may not fetch the index from file://, nor start a worker: both are scripts."""
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    locations = {row["location"] for row in json.loads(index.partition("=")[2])["docs"]}
    assert "how-to/install.html#without-a-network" in locations
    shim = re.search(r'<script src="([^"]*iframe-worker[^"]*)"', (site / "index.html").read_text())
    assert shim and "IFrameWorker" in (site / shim[1]).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("docs/metrics.md", "\n[gone](how-to/gone.md)\n"),
        ("docs/metrics.md", "\n[gone](#no-such-heading)\n"),
        ("docs/how-to/install.md", "\n[gone](../../schemas/gone.schema.json)\n"),
        ("README.md", "\n[gone](docs/gone.md)\n"),
    ],
)
def test_a_dead_link_fails_the_build(page: str, text: str, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("README.md", "CONTRIBUTING.md", "CITATION.cff", "mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / file, root / file)
    path = root / page
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    done = build(root, tmp_path / "site")
    assert done.returncode != 0
    assert re.search("gone|no-such-heading", done.stderr)
