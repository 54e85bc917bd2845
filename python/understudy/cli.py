"""The program `understudy`: a group whose commands are the modules in the folder commands/."""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

import click

from understudy import __version__, commands
from understudy.errors import UnderstudyError


class CommandRoom(click.Group):
    """The commands are the listing of the folder `room`, a package; a module is imported when it
    is called or listed."""

    def __init__(self, *args: Any, room: ModuleType = commands, **more: Any) -> None:
        super().__init__(*args, **more)
        self.room = room

    def list_commands(self, ctx: click.Context) -> list[str]:
        modules = (module.name for module in pkgutil.iter_modules(self.room.__path__))
        return sorted(name.replace("_", "-") for name in modules if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{self.room.__name__}.{cmd_name.replace('-', '_')}")
        command = module.command
        assert isinstance(command, click.Command), f"{module.__name__}.command is no click.Command"
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an UnderstudyError becomes one sentence on stderr and exit status 1."""
        try:
            return super().invoke(ctx)
        except UnderstudyError as error:
            click.echo(f"understudy: {error}", err=True)
            ctx.exit(1)


@click.group(
    cls=CommandRoom,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="understudy")
def main() -> None:
    """Learn an application's I/O, play it on any storage system, and judge what came out."""
