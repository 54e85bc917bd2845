"""The program `understudy`: a group whose commands are the modules in the folder commands/."""

import ast
import errno
import importlib
import importlib.util
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from understudy import __version__, commands
from understudy.errors import UnderstudyError, one_line
from understudy.messages import tell

# The exit statuses of every command, besides 0; docs/architecture.md tells of them.
FAILED, UNUSABLE, UNDECIDED = 1, 2, 3


class CommandDirectory(click.Group):
    """The commands are the listing of `package`; a module is imported when it is called."""

    def __init__(self, *args: Any, package: ModuleType = commands, **more: Any) -> None:
        super().__init__(*args, **more)
        self.package = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        modules = (module.name for module in pkgutil.iter_modules(self.package.__path__))
        return sorted(name.replace("_", "-") for name in modules if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(self._module(cmd_name))
        command = module.command
        assert isinstance(command, click.Command), f"{module.__name__}.command is no click.Command"
        return command

    def _module(self, cmd_name: str) -> str:
        return f"{self.package.__name__}.{cmd_name.replace('-', '_')}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click's, without the import of the commands."""
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names), default=0)
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self._described(ctx, name).get_short_help_str(limit)) for name in names]
            )

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

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an UnderstudyError becomes one message on stderr and exit status 2."""
        try:
            return super().invoke(ctx)
        except UnderstudyError as error:
            print_error(error)
            ctx.exit(UNUSABLE)
        except OSError as error:  # of standard output: those of files are told by the commands
            if error.filename is not None or error.errno == errno.EPIPE:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            print_error(UnderstudyError(f"standard output cannot be written: {error.strerror}"))
            ctx.exit(UNUSABLE)
        except click.ClickException as error:  # printed by click, with what the user typed
            error.message = one_line(error.message)  # type: ignore[misc]
            raise


def print_error(error: UnderstudyError) -> None:
    """The one place where errors of commands are printed."""
    tell(str(error))


@click.group(
    cls=CommandDirectory,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="understudy")
def main() -> None:
    """Learn the I/O of an application, replay it on any storage system, and check the result."""
