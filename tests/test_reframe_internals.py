"""ReFrame: one module uses more than its public interface, and it works with the
oldest and the newest ReFrame that pyproject.toml allows."""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.needs import needs
from tests.support.player import program
from tests.test_checks import Session, cases, sample
from understudy.commands import doctor
from understudy.paths import ROOT

INTERNALS = ROOT / "python" / "understudy" / "reframe" / "reframe_internals.py"
# Of ReFrame's manual; where names are given, these alone.
PUBLIC: dict[str, set[str] | None] = {
    "reframe": None,
    "reframe.core.backends": {"getlauncher"},
    "reframe.core.builtins": None,
    "reframe.core.exceptions": None,
    "reframe.core.logging": {"getlogger"},
    "reframe.core.runtime": {"runtime"},
    "reframe.utility": {"sanity", "typecheck"},
    "reframe.utility.sanity": None,
}
INTERNAL = re.compile(r"reframe\.(core|frontend|schemas|utility)(\.\w+)*")  # a module's name
FRAMES = {"_getframe", "currentframe", "f_back", "f_locals", "stack"}
STANDARD = {"os", "sys"}  # modules whose private names are not ReFrame's
OF_TUPLES = {"_asdict", "_fields", "_replace"}  # public names of NamedTuple


def sources() -> dict[Path, ast.Module]:
    """The parsed files that ReFrame loads or that load ReFrame, without that module."""
    folders = (ROOT / "python" / "understudy", ROOT / "checks", ROOT / "configs")
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    assert INTERNALS in paths
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in paths
        if path != INTERNALS and "templates" not in path.parts
    }


def defined(tree: ast.Module) -> Iterator[str]:
    """Names that a module gives to what is its own."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name


def imported(tree: ast.Module) -> Iterator[tuple[str, str | None, str]]:
    """(module, name in it, name here) for each import of ReFrame."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(alias.name, None, alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = str(node.module)
            names = [(module, alias.name, alias.asname or alias.name) for alias in node.names]
        else:
            continue
        yield from (name for name in names if name[0].split(".")[0] == "reframe")


def root(node: ast.expr) -> str | None:
    """The name that an expression such as `a.b.c` begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def internals(tree: ast.Module, value_: set[str]) -> Iterator[str]:
    """What a module uses of ReFrame beyond its public interface."""
    local_names = set()
    for module, name, local_name in imported(tree):
        local_names.add(local_name.split(".")[0])
        names = PUBLIC.get(module, set())
        if module not in PUBLIC or (names is not None and name not in names):
            yield f"import of {module}.{name}" if name else f"import of {module}"
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, value=value) if name in FRAMES:
                if name != "stack" or root(value) == "inspect":
                    yield f"frames: {name}"
            case ast.Attribute(attr=name, value=value, ctx=context):
                private = name.startswith("_") and not name.endswith("__")
                if private and name not in value_ and root(value) not in STANDARD:
                    yield f"attribute {name}"
                elif isinstance(context, ast.Store) and root(value) in local_names:
                    yield f"assignment to {root(value)}.….{name}"
            case ast.Call(func=ast.Name(id="setattr"), args=[target, *_]):
                if root(target) in local_names:
                    yield f"setattr of {root(target)}"
            case ast.Constant(value=str(text)) if INTERNAL.fullmatch(text):
                yield f"module {text}"


def test_one_module_touches_internals_of_reframe() -> None:
    trees = sources()
    names = OF_TUPLES | {name for tree in trees.values() for name in defined(tree)}
    uses = [
        f"{path.relative_to(ROOT)}: {use}"
        for path, tree in trees.items()
        for use in internals(tree, names)
    ]
    assert uses == []


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("from reframe.frontend.executors import Runner", "import of reframe.frontend.executors"),
        ("from reframe.core.logging import _logger", "import of reframe.core.logging._logger"),
        ("import reframe.frontend.cli", "import of reframe.frontend.cli"),
        ("def f(test): return test._rfm_var_space", "attribute _rfm_var_space"),
        ("def f(job): job._script_filename = 1", "attribute _script_filename"),
        ("import reframe as rfm\nrfm.RegressionTest.skip = None", "assignment to rfm"),
        ("import reframe as rfm\nsetattr(rfm.RegressionTest, 'skip', None)", "setattr of rfm"),
        ("import sys\nsys.modules.get('reframe.frontend.cli')", "module reframe.frontend.cli"),
        ("import sys\nsys._getframe().f_back", "frames: f_back"),
        ("import inspect\ninspect.stack()", "frames: stack"),
    ],
)
def test_internals_are_seen(text: str, use: str) -> None:
    assert any(told.startswith(use) for told in internals(ast.parse(text), set()))


def test_an_import_does_one_thing() -> None:
    """No module of the checks does more than define, but for one call of reframe_internals."""
    definitions = ast.Import | ast.ImportFrom | ast.ClassDef | ast.FunctionDef
    values = ast.Assign | ast.AnnAssign
    done = [
        f"{path.name}: {ast.unparse(node).partition('(')[0]}"
        for path in sorted(INTERNALS.parent.rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if not isinstance(node, definitions | values)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    assert done == ["checked.py: reframe_internals.attach"]


def test_each_function_of_the_module_says_how_to_do_without_it() -> None:
    """Those that it offers, but for the one that calls others."""
    tree = ast.parse(INTERNALS.read_text(encoding="utf-8"))
    offered = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.decorator_list
    ]
    assert len(offered) > 10
    silent = [
        node.name
        for node in offered
        if not node.name.startswith("_")
        and not re.search(
            r"Missing:\s.*\sDoes:\s.*\sTo\s+drop:\s", ast.get_docstring(node) or "", re.DOTALL
        )
    ]
    assert silent == []


# -- the versions --------------------------------------------------------------------------------

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
CASE = ["-P", "workload=sample", "-P", "method=posix", "-P", "stripe_count=default"]


def requirement() -> str:
    """What pyproject.toml says of ReFrame."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [words] = re.findall(r'"(ReFrame-HPC[^"]*)"', text)
    return str(words)


def resolved(words: str) -> str:
    """The version of ReFrame that pip takes for a requirement."""
    options = ["--dry-run", "--no-deps", "--ignore-installed", "--report", "-"]
    told = subprocess.run([*PIP, "install", *options, words], capture_output=True, check=True)
    [row] = json.loads(told.stdout)["install"]
    return str(row["metadata"]["version"])


def unpacked(version: str) -> Path:
    """A directory with that ReFrame alone, kept for later runs of the tests."""
    folder = Path(tempfile.gettempdir()) / f"understudy-reframe-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    assert folder.stat().st_uid == os.getuid()
    if not (folder / version).is_dir():
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            into = Path(fresh) / version
            words = ["install", "--no-deps", "--target", str(into), f"ReFrame-HPC=={version}"]
            subprocess.run([*PIP, *words], check=True)
            into.rename(folder / version)
    return folder / version


def replay(session: Session, action: str) -> subprocess.CompletedProcess[str]:
    """ReFrame on one case of one check."""
    reframe = Path(sys.executable).parent / "reframe"
    options = ["-c", ROOT / "checks" / "replay.py", "--system=localhost:tmpfs", *CASE]
    return subprocess.run(
        [reframe, *options, "-S", "time_scale=0", action],
        cwd=session.folder,
        env=session.environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_doctor_knows_the_versions() -> None:
    oldest, too_new = (".".join(map(str, numbers)) for numbers in doctor.REFRAME)
    assert requirement() == f"ReFrame-HPC>={oldest},<{too_new}"


@needs("PyPI")
def test_the_oldest_and_the_newest_reframe_list_and_run_a_check(tmp_path: Path) -> None:
    lowest = re.findall(r">=([\d.]+)", requirement())[0]
    for version in dict.fromkeys([lowest, resolved(requirement())]):
        folder = tmp_path / version
        folder.mkdir()
        session = Session(folder, sample(ranks=1))
        session.environment["PATH"] = f"{Path(program()).parent}:{os.environ['PATH']}"
        session.environment["PYTHONPATH"] = str(unpacked(version))
        listed = replay(session, "-l")
        assert f"{version}\n" in listed.stdout and "1 cases move" in listed.stderr, listed
        dry = replay(session, "--dry-run")
        assert cases(dry.stdout) == (1, 0, 0), dry
        ran = replay(session, "-r")
        assert cases(ran.stdout) == (1, 0, 0) and ran.returncode == 0, ran
        [record] = (folder / "out" / "records").rglob("*.json.gz")
        uuid = json.loads((folder / "report.json").read_text())["session_info"]["uuid"]
        assert uuid in str(record), record
