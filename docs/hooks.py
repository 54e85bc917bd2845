"""Makes the site of the documentation: pages from the README, and the reference from the code.

mkdocs calls the functions named on_...; nothing generated is kept.
"""

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md"}
SCHEMAS = (
    *("workload", "run", "player", "skeleton", "acceptance", "application", "case"),
    *("report", "comparison", "trend", "campaign", "verdict"),
)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(\s*([^)\s]+)\s*\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files of docs/."""
    texts = {
        "reference/commands.md": "\n".join(_commands()),
        "reference/checks.md": "\n".join(_variables()),
        **{f"reference/{name}.md": "\n".join(_schema(name)) for name in SCHEMAS},
        **{page: (ROOT / source).read_text(encoding="utf-8") for page, source in PAGES.items()},
    }
    for path, text in texts.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files that are not on the site: to the reference where it has them, else none."""
    source = ROOT / PAGES.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    pages = {str((ROOT / path).resolve()): page for page, path in PAGES.items()}

    def link(match: re.Match[str]) -> str:
        image, text, to = match.groups()
        if re.match(r"[a-z]+:|#", to):
            return match[0]
        path, _, anchor = to.partition("#")
        target = Path(os.path.normpath(source.parent / path))
        if not target.exists() and not _generated(target, files):
            raise ValueError(f"{source.relative_to(ROOT)}: the link {to} leads nowhere")
        name = pages.get(str(target))
        if target.parent == ROOT / "schemas" and target.name.split(".")[0] in SCHEMAS:
            name = f"reference/{target.name.split('.')[0]}.md"
        if name is None and not target.is_relative_to(DOCS):
            return text if text.startswith("`") else f"{text} (`{target.relative_to(ROOT)}`)"
        name = name or str(target.relative_to(DOCS))
        here = os.path.relpath(name, Path(page.file.src_uri).parent)
        return f"{image}[{text}]({here}{f'#{anchor}' if anchor else ''})"

    return _LINK.sub(link, markdown)


def _generated(target: Path, files: Files) -> bool:
    return target.is_relative_to(DOCS) and bool(
        files.get_file_from_path(str(target.relative_to(DOCS)))
    )


# -- the commands ------------------------------------------------------------------------------


def _commands() -> Iterator[str]:
    from understudy.cli import main  # not above: mkdocs takes back what a hook adds to sys.path

    yield "# Commands\n\nWhat `--help` prints, of every command.\n"
    yield from _command(main, "understudy", 2)


def _command(command: click.Command, name: str, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=name, terminal_width=88, max_content_width=88)
    yield f"{'#' * min(level, 4)} {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            subcommand = command.get_command(context, sub)
            if subcommand is not None and not subcommand.hidden:
                yield from _command(subcommand, f"{name} {sub}", level + 1)


# -- the variables of checks -------------------------------------------------------------------


def _variables() -> Iterator[str]:
    checks = sorted((ROOT / "checks").glob("*.py"))
    yield "# Checks\n\n| check | question |\n|---|---|"
    for path in checks:
        asks = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")
        yield f"| `{path.stem}` | {' '.join(asks[0].split())} |"
    yield (
        "\n## Variables and parameters\n\nSet variables with `-S [CHECK.]NAME=VALUE`, and "
        "parameters with `-P NAME=VALUE,...`. *Of* is the class that has it; the checks inherit "
        "them.\n\n| name | kind | type or values | default | of | |\n|---|---|---|---|---|---|"
    )
    sources = [
        *(ROOT / "python/understudy/reframe").rglob("*.py"),
        *checks,
        *ROOT.glob("studies/*/understudy_*/checks/*.py"),
    ]
    rows = sorted(row for path in sources for row in _of_source(path))
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _of_source(path: Path) -> Iterator[tuple[str, ...]]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for owner in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ClassDef)):
        for node in owner.body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            call, target = node.value, node.targets[0]
            kind = call.func.id if isinstance(call.func, ast.Name) else ""
            if kind not in ("variable", "parameter") or not isinstance(target, ast.Name):
                continue
            given = {k.arg: ast.unparse(k.value) for k in call.keywords}
            values = ", ".join(_code(ast.unparse(a)) for a in call.args)
            comment = re.search(r"#\s+(?!noqa|type:)(.*)$", lines[(node.end_lineno or 1) - 1])
            yield (
                f"`{target.id}`",
                kind,
                values,
                _code(given["value"]) if "value" in given else "",
                f"`{owner.name}`",
                comment[1].replace("|", "\\|") if comment else "",
            )


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


# -- the keys of files -------------------------------------------------------------------------


def _schema(name: str) -> Iterator[str]:
    row = json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
    yield f"# {row.get('title') or name}\n\n{row.get('description', '')}\n"
    yield "| key | type | | |\n|---|---|---|---|"
    yield from _keys(row, row, "", 0)
    for part, definition in row.get("$defs", {}).items():
        if definition.get("properties"):
            yield f"\n## {part}\n\n{definition.get('description', '')}\n"
            yield "| key | type | | |\n|---|---|---|---|"
            yield from _keys(definition, row, "", 0)


def _keys(schema: dict[str, Any], whole: dict[str, Any], before: str, depth: int) -> Iterator[str]:
    required = schema.get("required", ())
    for key, value in schema.get("properties", {}).items():
        said = str(value.get("description", "")) if isinstance(value, dict) else ""
        must = "required" if key in required else ""
        text = said.replace("|", "\\|").replace("\n", " ")
        yield f"| `{before}{key}` | {_type(value, whole)} | {must} | {text} |"
        inner = value if isinstance(value, dict) else {}
        if inner.get("type") == "array" and isinstance(inner.get("items"), dict):
            inner, mark = inner["items"], "[]"
        else:
            mark = ""
        if depth < 3 and inner.get("properties"):
            yield from _keys(inner, whole, f"{before}{key}{mark}.", depth + 1)


def _type(value: Any, whole: dict[str, Any]) -> str:
    if not isinstance(value, dict):
        return ""
    if "$ref" in value:
        part = str(value["$ref"]).rpartition("/")[2]
        definition = whole.get("$defs", {}).get(part, {})
        if definition.get("properties"):
            return f"[{part}](#{part.lower()})"
        return _type(definition, whole) or part
    if "enum" in value:
        return ", ".join(_code(json.dumps(choice)) for choice in value["enum"])
    if "const" in value:
        return _code(json.dumps(value["const"]))
    for word in ("oneOf", "anyOf"):
        if word in value:
            return " or ".join(
                dict.fromkeys(filter(None, (_type(choice, whole) for choice in value[word])))
            )
    kind = value.get("type", "")
    if kind == "array":
        return f"list of {_type(value.get('items', {}), whole) or 'values'}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
