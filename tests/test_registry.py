"""The registry: lookups, conflicts, kept failures, restriction, and plugins in real distributions on disk."""

from __future__ import annotations

import logging
import sys
import textwrap
import traceback
from types import SimpleNamespace

import pytest

import geoframe as gf
from geoframe import builtin
from geoframe.plugins import KINDS
from geoframe.registry import default_registry

BROKEN = "raise RuntimeError('no\\nluck')"
NORM = """
    import attrs
    import geoframe as gf

    @attrs.frozen(kw_only=True)
    class FeatureNorm(gf.Probe):
        version = "1"
        outputs = {"norm": gf.Output(dims=(), units="feature L2")}

        def measure(self, encoder, batch):
            return {"norm": encoder.features(batch.images).norm(dim=1)}

    class NotAProbe:
        pass
"""


def hooks(names="norm", target="geo_test_norm:FeatureNorm"):
    return f"""
    import geoframe as gf

    @gf.hookimpl
    def geoframe_probes():
        for name in {names!r}.split():
            yield gf.Entry(name, {target!r}, "length of the feature vector")
    """


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on sys.path, with a function that puts an installed distribution there."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("GEOFRAME_PLUGINS", raising=False)

    def install(dist, module, source, point="test-plugin"):
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        info = tmp_path / f"{dist.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.2\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[geoframe]\n{point} = {module}\n", encoding="utf-8")

    install.module = lambda name, source: (tmp_path / f"{name}.py").write_text(textwrap.dedent(source), "utf-8")
    yield install
    for name in set(sys.modules) - before:
        if name.startswith("geo_test_"):
            del sys.modules[name]


def offering(*entries, kind="probe"):
    """An object with one hook that offers `entries`."""
    name = KINDS[kind].hook

    def hook():
        yield from entries

    hook.__name__ = name
    return SimpleNamespace(**{name: gf.hookimpl(hook)})


def test_an_installed_plugin_is_found_and_its_target_loads_lazily(site):
    site("geo-test", "geo_test_plugin", hooks())
    site.module("geo_test_norm", NORM)
    registry = gf.Registry.discover()
    found = registry.find("probe", "norm")
    assert found.plugin.source == "geo-test 1.2"
    assert found.entry.summary == "length of the feature vector"
    assert "geo_test_norm" not in sys.modules
    assert found.load() is registry.get("probe", "norm") is sys.modules["geo_test_norm"].FeatureNorm
    assert {"norm", "ratio"} <= set(registry.names("probe"))


def test_two_distributions_with_one_entry_point_name_both_load(site):
    site("geo-test-a", "geo_test_a", hooks("first"), point="same")
    site("geo-test-b", "geo_test_b", hooks("second"), point="same")
    assert {"first", "second"} <= set(gf.Registry.discover().names("probe"))


def test_a_name_offered_twice_is_an_error_that_names_both(site):
    site("geo-test-a", "geo_test_a", hooks(), point="a")
    site("geo-test-b", "geo_test_b", hooks(), point="b")
    registry = gf.Registry.discover()
    with pytest.raises(gf.BadInput, match=r"probe 'norm' is offered twice, by geo-test-a 1\.2 .* geo-test-b 1\.2"):
        registry.get("probe", "norm")
    assert registry.names("encoder"), "other kinds still work"


def test_a_plugin_that_takes_a_built_in_name_is_an_error(site):
    site("geo-test", "geo_test_plugin", hooks("ratio"))
    with pytest.raises(gf.BadInput, match=r"offered twice, by geoframe .*geo-test 1\.2"):
        gf.Registry.discover().names("probe")


def test_a_broken_plugin_is_one_warning_line_and_is_kept_with_its_traceback(site, caplog):
    site("geo-test-broken", "geo_test_broken", BROKEN)
    with caplog.at_level(logging.WARNING, "geoframe"):
        registry = gf.Registry.discover()
    (line,) = [record.getMessage() for record in caplog.records if "geo-test-broken" in record.getMessage()]
    assert "\n" not in line
    assert "RuntimeError: no luck" in line
    (plugin,) = [plugin for plugin in registry.plugins() if plugin.broken]
    assert (plugin.dist, plugin.version, plugin.failure) == ("geo-test-broken", "1.2", "RuntimeError: no luck")
    assert "geo_test_broken.py" in "".join(traceback.format_exception(plugin.error))
    assert registry.names("probe"), "the others still work"


def test_a_broken_plugin_is_reraised_when_asked_for(site):
    site("geo-test-broken", "geo_test_broken", BROKEN, point="broken")
    registry = gf.Registry.discover()
    for name in ("broken", "geo-test-broken", "Geo_Test.Broken"):
        with pytest.raises(gf.BadInput, match=r"geo-test-broken 1\.2 is broken .*RuntimeError: no luck") as caught:
            registry.plugin(name)
        assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(gf.UnknownName, match=r"no probe 'norm'.*geo-test-broken 1\.2 is broken") as caught:
        registry.get("probe", "norm")
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_missing_module_is_a_broken_plugin(site):
    site("geo-test", "geo_test_gone", "import geo_test_that_is_not_there")
    (failure,) = [plugin.failure for plugin in gf.Registry.discover().plugins() if plugin.broken]
    assert failure == "ModuleNotFoundError: No module named 'geo_test_that_is_not_there'"


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        (offering("norm"), "must yield geoframe.Entry, not str"),
        (offering(None), "must yield geoframe.Entry, not NoneType"),
        (SimpleNamespace(geoframe_probes=lambda: iter(())), "no hook: is @geoframe.hookimpl missing"),
        (SimpleNamespace(geoframe_probez=gf.hookimpl(lambda: iter(()))), "no hook 'geoframe_probez'; did you mean"),
        (SimpleNamespace(geoframe_probes=gf.hookimpl(lambda wish: [])), "wish"),
        (SimpleNamespace(geoframe_probes=gf.hookimpl(lambda: None)), "not iterable"),
        (SimpleNamespace(geoframe_probes=gf.hookimpl(lambda: 1 / 0)), "ZeroDivisionError"),
        (SimpleNamespace(geoframe_probes=gf.hookimpl(lambda: [gf.Entry("a b", "m:C")])), "'a b' is not a name"),
        (
            SimpleNamespace(geoframe_probes=gf.hookimpl(lambda: [gf.Entry("a", "m.C")])),
            "not of the form 'module:Class'",
        ),
    ],
)
def test_a_hook_that_misbehaves_breaks_its_plugin_only(plugin, why):
    registry = gf.Registry()
    registry.register(offering(gf.Entry("good", "m:C")), "good")
    broken = registry.register(plugin, "bad", dist="bad-dist", version="3")
    assert broken.broken
    assert why in broken.failure
    assert registry.names("probe") == ["good"]
    assert registry.manager.list_name_plugin() == [(":good", registry.manager.get_plugin(":good"))]


def test_a_failing_hook_takes_the_whole_plugin_with_it():
    def probes():
        yield gf.Entry("half", "m:C")
        raise ValueError("half way")

    registry = gf.Registry()
    registry.register(SimpleNamespace(geoframe_probes=gf.hookimpl(probes)), "half")
    assert registry.names("probe") == []


def test_unknown_names_suggest_near_ones():
    registry = gf.Registry()
    registry.register(offering(gf.Entry("ratio", "m:C"), gf.Entry("norm", "m:C")), "two")
    with pytest.raises(gf.UnknownName, match="no probe 'ratoi'; did you mean 'ratio'"):
        registry.get("probe", "ratoi")
    with pytest.raises(gf.UnknownName, match="no probe 'xyz'; known: norm, ratio"):
        registry.get("probe", "xyz")
    with pytest.raises(gf.UnknownName, match="no kind 'prob'; did you mean"):
        registry.get("prob", "ratio")
    with pytest.raises(gf.UnknownName, match="no plugin 'tow'; did you mean 'two'"):
        registry.plugin("tow")


def test_targets_are_checked_when_they_load(site):
    site("geo-test", "geo_test_plugin", hooks(target="geo_test_norm:NotAProbe"))
    site.module("geo_test_norm", NORM)
    with pytest.raises(gf.BadInput, match=r"'norm' of geo-test 1\.2: .*NotAProbe is not a subclass of geoframe.probe"):
        gf.Registry.discover().get("probe", "norm")


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("geo_test_gone:A", "ModuleNotFoundError"),
        ("geo_test_norm:Gone", "AttributeError"),
        ("geo_test_bad:A", "no luck"),
    ],
)
def test_a_target_that_fails_to_load_names_its_distribution(site, target, why):
    site("geo-test", "geo_test_plugin", hooks(target=target))
    site.module("geo_test_norm", NORM)
    site.module("geo_test_bad", BROKEN)
    with pytest.raises(gf.BadInput, match=rf"probe 'norm' of geo-test 1\.2 can't be loaded from .*{why}"):
        gf.Registry.discover().get("probe", "norm")


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("", set()),
        (" , ", set()),
        ("geo-test-a", {"first"}),
        ("GEO_test.a", {"first"}),
        ("point-b", {"second"}),
        ("geo-test-a, point-b", {"first", "second"}),
    ],
)
def test_the_environment_restricts_which_plugins_load(site, monkeypatch, value, names):
    site("geo-test-a", "geo_test_a", hooks("first"), point="point-a")
    site("geo-test-b", "geo_test_b", hooks("second"), point="point-b")
    monkeypatch.setenv("GEOFRAME_PLUGINS", value)
    registry = gf.Registry.discover()
    built_in = {entry.name for entry in builtin.geoframe_probes()}
    assert "ratio" in built_in
    assert set(registry.names("probe")) == built_in | names
    assert ("geo_test_a" in sys.modules) == ("first" in names)
    assert ("geo_test_b" in sys.modules) == ("second" in names)


def test_a_restriction_that_names_nothing_installed_is_an_error(site, monkeypatch):
    site("geo-test-a", "geo_test_a", hooks("first"))
    monkeypatch.setenv("GEOFRAME_PLUGINS", "geo-test-b")
    with pytest.raises(gf.UnknownName, match=r"GEOFRAME_PLUGINS names 'geo-test-b'.*did you mean 'geo-test-a'"):
        gf.Registry.discover()
    assert gf.Registry.discover(only=["geo-test-a"]).find("probe", "first")


def test_registries_do_not_leak_into_each_other():
    one, other = gf.Registry(), gf.Registry()
    one.register(offering(gf.Entry("norm", "m:C")), "plugin")
    assert other.names("probe") == []
    assert other.plugins() == []


def test_the_default_registry_is_made_once():
    assert default_registry() is default_registry()
    assert default_registry().plugins()[0].dist == "geoframe"


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in KINDS for name in gf.Registry.discover(only=[]).names(kind)],
)
def test_every_built_in_target_loads(kind, name):
    found = gf.Registry.discover(only=[]).find(kind, name)
    assert found.plugin.dist == "geoframe"
    assert found.entry.summary
    assert found.load().__doc__


def test_every_public_class_is_registered():
    bases = {"encoder": "Encoder", "probeset": "ProbeSet", "probe": "Probe", "figure": "Figure", "study": "Study"}
    registry = gf.Registry.discover(only=[])
    for kind, base in bases.items():
        registered = {registry.get(kind, name) for name in registry.names(kind)}
        public = {value for value in map(gf.__getattr__, gf._MODULE_OF) if isinstance(value, type)}
        offered = {value for value in public if issubclass(value, getattr(gf, base)) and value is not getattr(gf, base)}
        assert offered <= registered
