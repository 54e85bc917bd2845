"""The program `understudy`: a group whose commands are the modules in the folder commands/."""

import ast
import errno
import gc
import importlib.util
import os
import pkgutil
import signal
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn

import click

from understudy import commands, studies
from understudy.errors import Mistakes, UnderstudyError, one_line
from understudy.messages import tell
from understudy.release import version

# The exit statuses of every command, besides 0; docs/architecture.md tells of them.
FAILED, UNUSABLE, UNDECIDED = 1, 2, 3
ALL = f"{__name__}.all"  # in the context: help has all commands

# The first help has these; --all has the others too.
EVERYDAY = (
    *("describe", "show", "run", "report", "accept"),
    *("compare", "doctor", "system", "skel", "records"),
)

# Commands of earlier versions, and what does their work.
FORMER = {
    "migrate": "understudy records migrate; of workloads: understudy describe OLD -o NEW",
    "predict": "understudy show WORKLOAD --counters",
    "scale": "understudy describe WORKLOAD -n RANKS --rule RULE -o NEW",
    "where": "understudy doctor --paths",
}


class CommandDirectory(click.Group):
    """The commands are the listing of `package`, and of the same folder of each study where it is
    ours; a module is imported when it is called. Help begins with those of `first` that there are,
    in their order. `former`: what does the work of commands that there were."""

    def __init__(
        self,
        *args: Any,
        package: ModuleType = commands,
        first: Sequence[str] = (),
        former: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.package = package
        self.former = former
        self.first = [name for name in first if name in self.modules]

    @property
    def modules(self) -> dict[str, str]:
        """The full name of the module of each command."""
        package, path = self.package.__name__, tuple(self.package.__path__)
        if self.package is commands:
            full_names = studies.plugins("commands", package, path)
        else:
            full_names = {m.name: f"{package}.{m.name}" for m in pkgutil.iter_modules(path)}
        return {name.replace("_", "-"): module for name, module in full_names.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = studies.load(self._module(cmd_name), f"command {cmd_name}")
        command = module.command
        assert isinstance(command, click.Command), f"{module.__name__}.command is no click.Command"
        return command

    def _module(self, cmd_name: str) -> str:
        return self.modules[cmd_name]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click's, without the import of the commands."""
        others = [name for name in self.list_commands(ctx) if name not in self.first]
        parts = {"Everyday commands": self.first, "Other commands": others}
        if not self.first:
            parts = {"Commands": others}
        elif not ctx.meta.get(ALL):
            del parts["Other commands"]
        limit = formatter.width - 6 - max(map(len, self.list_commands(ctx)), default=0)
        for title, names in parts.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(n, self._described(ctx, n).get_short_help_str(limit)) for n in names]
                )
        if ALL not in ctx.meta and self.first:
            formatter.write_paragraph()
            formatter.write_text(f"{len(others)} more: understudy --all")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's; of a name that it does not have, a message with its successor or the nearest
        ones."""
        name = args[0]
        if name in self.former:
            raise UnderstudyError(f"{name} is now {self.former[name]}")
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = get_close_matches(name, self.list_commands(ctx))
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def _described(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """A command with its help alone, where its source has a function of that name with a
        docstring; else the command itself."""
        spec = importlib.util.find_spec(self._module(cmd_name))
        assert spec and spec.origin, f"{cmd_name} was listed"
        tree = ast.parse(Path(spec.origin).read_bytes())
        texts = [
            ast.get_docstring(node)
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name == "command"
        ]
        if texts and texts[-1]:
            return click.Command(cmd_name, help=texts[-1])
        command = self.get_command(ctx, cmd_name)
        assert command, f"{cmd_name} was listed"
        return command

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """As click's, which prints help and version here."""
        try:
            return super().make_context(*args, **more)
        except OSError as error:
            _end_unwritten(error)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an UnderstudyError becomes messages on stderr and exit status 2."""
        if sys.stdout is None:  # the next file that is opened would get its number
            print_error(UnderstudyError("standard output is closed; expected it to be open"))
            ctx.exit(UNUSABLE)
        try:
            return super().invoke(ctx)
        except UnderstudyError as error:
            print_error(error)
            ctx.exit(UNUSABLE)
        except KeyboardInterrupt:  # click's status for it is that of a verdict
            tell("ended by SIGINT")
            ctx.exit(128 + signal.SIGINT)
        except OSError as error:
            _end_unwritten(error)
        except RuntimeError as error:  # Path.resolve, before Python 3.13
            if not str(error).startswith("Symlink loop"):
                raise
            print_error(UnderstudyError(f"{error}; expected links that lead to a file or folder"))
            ctx.exit(UNUSABLE)
        except click.ClickException as error:  # printed by click, with what the user typed
            error.message = one_line(error.message)  # type: ignore[misc]
            raise


def _end_unwritten(error: OSError) -> NoReturn:
    """End with a message where standard output cannot be written; errors of files are told by the
    commands."""
    if error.filename is not None or error.errno == errno.EPIPE:
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print_error(UnderstudyError(f"standard output cannot be written: {error.strerror}"))
    sys.exit(UNUSABLE)


def print_error(error: UnderstudyError) -> None:
    """The one place where errors of commands are printed."""
    for message in error.messages if isinstance(error, Mistakes) else [str(error)]:
        tell(message)


def _show_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo(f"understudy, version {version()}")
        context.exit()


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


@click.group(
    cls=CommandDirectory,
    first=EVERYDAY,
    former=FORMER,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--all",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show this message with all commands and exit.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Learn the I/O of an application, replay it on any storage system, and check the result."""
    # Of millions of values that are read, none is garbage: look for cycles more seldom.
    gc.set_threshold(100_000, 50, 100)
