"""`geoframe list` and `geoframe plugins`: what there is, and who offers it."""

from __future__ import annotations

import traceback
from collections import Counter

import click

from geoframe.cli.options import TRACEBACK, console, table, traceback_option

_ORDER = ("study", "encoder", "probeset", "probe", "figure", "engine")


@click.command("list")
@traceback_option
def list_command() -> None:
    """List what there is to run and to measure with.

    Studies, encoders, probe sets, probes, figures and engines, with the distribution that offers them.
    """
    from geoframe.plugins import KINDS
    from geoframe.registry import default_registry

    registry = default_registry()
    listing = table("kind", "name", "summary", "from")
    for kind in _ORDER:
        for found in registry.entries(kind):
            listing.add_row(KINDS[kind].noun, found.name, found.entry.summary, found.plugin.source)
    console().print(listing, markup=False)


@click.command("plugins")
@traceback_option
@click.pass_context
def plugins_command(ctx: click.Context) -> None:
    """List the installed plugins.

    Broken ones are listed too; --traceback shows why they are.
    """
    from geoframe.registry import default_registry

    found = default_registry().plugins()
    listing = table("plugin", "from", "offers")
    for plugin in found:
        counts = Counter(kind for kind, _ in plugin.entries)
        offers = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
        listing.add_row(plugin.name, plugin.source, f"broken: {plugin.failure}" if plugin.broken else offers)
    console().print(listing, markup=False)
    for plugin in found:
        if plugin.error is not None and ctx.meta.get(TRACEBACK):
            click.echo(f"{plugin.name}:\n{''.join(traceback.format_exception(plugin.error))}", err=True)
