"""The command line. Importing it, and `--help`, loads neither torch nor matplotlib nor xarray."""

from __future__ import annotations

import sys
from typing import Any

import click

from geoframe import __version__
from geoframe.cli.options import TRACEBACK
from geoframe.errors import GeoframeError
from geoframe.process import share_cores

BAD_INPUT, INTERRUPTED = 2, 130
COMMANDS = {
    "run": "geoframe.cli.run:run",
    "profile": "geoframe.cli.profile:profile",
    "list": "geoframe.cli.listing:list_command",
    "status": "geoframe.cli.status:status",
    "plot": "geoframe.cli.plot:plot",
    "plugins": "geoframe.cli.listing:plugins_command",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used, and whose errors are one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        from importlib import import_module

        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an error that a user can act on is one line and exit code 2."""
        try:
            return super().invoke(ctx)
        except GeoframeError as error:
            if ctx.meta.get(TRACEBACK):
                raise
            click.echo(f"geoframe: {error}", err=True)
            ctx.exit(BAD_INPUT)
        except KeyboardInterrupt:
            click.echo("geoframe: interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="geoframe %(version)s")
def cli() -> None:
    """Measure how a learned image encoder reacts when its input moves a finite distance.

    Start with `geoframe run bump`; `geoframe list` shows what there is to run and to measure with.
    """


def main() -> None:
    """Run the command line."""
    share_cores()
    try:
        cli(standalone_mode=True)
    except BrokenPipeError:  # the reader of a pipe has gone (`geoframe list | head`)
        sys.stderr.close()
        sys.exit(0)
