"""Which encoders, probe sets, probes, studies, figures and engines there are, and who offers them.

A `Registry` is an object: tests and scripts make their own. `default_registry` is the one of the installed plugins.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import Any

import attrs
import pluggy

from geoframe.discovery import ONLY, Installed, installed, normal
from geoframe.errors import BadInput, UnknownName, did_you_mean
from geoframe.plugins import GROUP, KINDS, Entry, Hooks

_log = logging.getLogger("geoframe")


@attrs.frozen
class Plugin:
    """A plugin that was found, working or broken.

    Attributes
    ----------
    name, dist, version : str
        Its entry-point name, and the distribution that it comes from.
    entries : tuple of (str, Entry)
        What it offers, each with its kind; nothing if it is broken.
    error : Exception or None
        Why it is broken, with its traceback.
    """

    name: str
    dist: str
    version: str = ""
    entries: tuple[tuple[str, Entry], ...] = ()
    error: BaseException | None = attrs.field(default=None, eq=False)

    @property
    def broken(self) -> bool:
        """Whether it failed to load."""
        return self.error is not None

    @property
    def source(self) -> str:
        """Distribution and version."""
        return f"{self.dist} {self.version}".rstrip()

    @property
    def failure(self) -> str:
        """Why it is broken, in one line; empty if it works."""
        return "" if self.error is None else _one_line(self.error)


@attrs.frozen
class Registered:
    """An entry, its kind, and the plugin that offers it."""

    kind: str
    entry: Entry
    plugin: Plugin

    @property
    def name(self) -> str:
        """What users call it."""
        return self.entry.name

    def load(self) -> Any:
        """Import the target and check that it is a class of the right kind; `BadInput` names who offers it."""
        noun, base = KINDS[self.kind].noun, KINDS[self.kind].base
        who = f"{noun} {self.name!r} of {self.plugin.source}"
        try:
            target = resolve(self.entry.target)
        except Exception as error:
            raise BadInput(f"{who} can't be loaded from {self.entry.target}: {_one_line(error)}") from error
        if not (isinstance(target, type) and issubclass(target, resolve(base))):
            raise BadInput(f"{who}: {self.entry.target} is not a subclass of {base.replace(':', '.')}")
        return target


class Registry:
    """What plugins offer, by kind and name.

    `Registry()` is empty; `Registry.discover()` holds the built-in plugin and the installed ones.
    """

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(GROUP)
        self.manager.add_hookspecs(Hooks)
        self._plugins: list[Plugin] = []

    @classmethod
    def discover(cls, only: Iterable[str] | None = None) -> Registry:
        """Register the built-in plugin and every installed plugin.

        Parameters
        ----------
        only : iterable of str, optional
            Names of distributions or entry points; others are left out, and none but the built-in plugin loads
            if it is empty. Default: the comma-separated names in `GEOFRAME_PLUGINS`, or no restriction if unset.

        Raises
        ------
        UnknownName
            Where `only` names a plugin that isn't installed.
        """
        from geoframe import __version__, builtin

        registry = cls()
        registry.register(builtin, "builtin", dist="geoframe", version=__version__)
        for found in installed(only):
            registry._register_installed(found)
        return registry

    def register(self, plugin: object, name: str, *, dist: str = "", version: str = "") -> Plugin:
        """Register a module or object whose hooks are marked; one that fails is kept as broken, with a warning."""
        label = f"{dist}:{name}"
        try:
            self.manager.register(plugin, label)
            record = Plugin(name, dist or name, version, entries=tuple(_collect(self.manager, plugin)))
        except Exception as error:
            self._forget(plugin, label)
            return self._keep_broken(Plugin(name, dist or name, version, error=error))
        self._plugins.append(record)
        return record

    def plugins(self) -> list[Plugin]:
        """Every plugin, broken ones too, the built-in one first."""
        return list(self._plugins)

    def plugin(self, name: str) -> Plugin:
        """Return the plugin of that distribution or entry-point name; re-raise why, if it is broken."""
        for plugin in self._plugins:
            if name == plugin.name or normal(name) == normal(plugin.dist):
                if plugin.error is not None:
                    raise BadInput(_broken_line(plugin)) from plugin.error
                return plugin
        raise UnknownName(f"no plugin {name!r}{did_you_mean(name, (p.dist for p in self._plugins))}")

    def entries(self, kind: str) -> list[Registered]:
        """Everything of one kind, sorted by name; `BadInput` where two plugins offer one name."""
        known = [Registered(k, e, p) for p in self._plugins for k, e in p.entries if k == _known_kind(kind)]
        known.sort(key=lambda registered: registered.name)
        for first, second in pairwise(known):
            if first.name == second.name:
                raise BadInput(_duplicate_line(first, second))
        return known

    def names(self, kind: str) -> list[str]:
        """Names of one kind, sorted."""
        return [registered.name for registered in self.entries(kind)]

    def find(self, kind: str, name: str) -> Registered:
        """Return what is registered under a name; `UnknownName` suggests near ones and tells of broken plugins."""
        known = {registered.name: registered for registered in self.entries(kind)}
        if name in known:
            return known[name]
        broken = [plugin for plugin in self._plugins if plugin.broken]
        hint = "".join(f"; {_broken_line(plugin)}" for plugin in broken)
        message = f"no {KINDS[kind].noun} {name!r}{hint}{did_you_mean(name, known)}"
        raise UnknownName(message) from (broken[0].error if broken else None)

    def get(self, kind: str, name: str) -> Any:
        """Import and return the class registered under a name."""
        return self.find(kind, name).load()

    def _register_installed(self, found: Installed) -> None:
        try:
            plugin = found.point.load()
        except Exception as error:
            self._keep_broken(Plugin(found.point.name, found.dist, found.version, error=error))
        else:
            self.register(plugin, found.point.name, dist=found.dist, version=found.version)

    def _keep_broken(self, plugin: Plugin) -> Plugin:
        self._plugins.append(plugin)
        _log.warning("%s", _broken_line(plugin))
        return plugin

    def _forget(self, plugin: object, label: str) -> None:
        if self.manager.get_plugin(label) is plugin:
            self.manager.unregister(name=label)


@cache
def default_registry() -> Registry:
    """Return the registry of the installed plugins, discovered once a process."""
    return Registry.discover()


def _collect(manager: pluggy.PluginManager, plugin: object) -> Iterable[tuple[str, Entry]]:
    """Yield what a plugin's hooks offer; raise where a hook is misspelt, missing, or yields something else."""
    kinds = {kind.hook: name for name, kind in KINDS.items()}
    callers = manager.get_hookcallers(plugin) or []
    if not callers:
        raise BadInput("it has no hook: is @geoframe.hookimpl missing above its functions?")
    for caller in callers:
        if caller.name not in kinds:
            raise BadInput(f"there is no hook {caller.name!r}{did_you_mean(caller.name, kinds)}")
        for function in (impl.function for impl in caller.get_hookimpls() if impl.plugin is plugin):
            offered: Any = function()
            for entry in offered:
                if not isinstance(entry, Entry):
                    raise BadInput(f"hook {caller.name} must yield geoframe.Entry, not {type(entry).__name__}")
                yield kinds[caller.name], entry


def resolve(target: str) -> Any:
    """Import `"module:Class"` and return the class."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _known_kind(kind: str) -> str:
    if kind not in KINDS:
        raise UnknownName(f"no kind {kind!r}{did_you_mean(kind, KINDS)}")
    return kind


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _broken_line(plugin: Plugin) -> str:
    return f"plugin {plugin.name!r} of {plugin.source} is broken and left out: {plugin.failure}"


def _duplicate_line(*both: Registered) -> str:
    offers = " and ".join(f"{one.plugin.source} ({one.entry.target})" for one in both)
    what = f"{KINDS[both[0].kind].noun} {both[0].name!r}"
    return f"{what} is offered twice, by {offers}: uninstall one, or leave it out with {ONLY}"
