"""What a plugin needs: `Entry`, the marker `hookimpl`, and the hooks that geoframe calls. Imports no torch.

A plugin is a module with one or more functions marked `hookimpl`, named in its package's metadata:

.. code-block:: toml

    [project.entry-points.geoframe]
    my-package = "my_package.plugin"

Keep that module light: targets load only when they are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs
import pluggy

from geoframe.errors import BadInput

GROUP = "geoframe"
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_TARGET = re.compile(r"(\w+\.)*\w+:\w+")


def _one_line(text: str) -> str:
    return " ".join(text.split())


@attrs.frozen
class Entry:
    """One thing that a plugin offers.

    Attributes
    ----------
    name : str
        What users call it: letters, digits and `_ . + -`.
    target : str
        `"module:Class"`, imported on first use.
    summary : str
        One line for `geoframe list`.
    """

    name: str = attrs.field()
    target: str = attrs.field()
    summary: str = attrs.field(default="", converter=_one_line)

    @name.validator
    def _check_name(self, _: object, value: object) -> None:
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise BadInput(f"entry name {value!r} is not a name: use letters, digits and _ . + - only")

    @target.validator
    def _check_target(self, _: object, value: object) -> None:
        if not isinstance(value, str) or not _TARGET.fullmatch(value):
            raise BadInput(f"entry {self.name!r}: target {value!r} is not of the form 'module:Class'")


@attrs.frozen
class Kind:
    """One kind of thing that plugins offer: what it is called, its hook, and the base class of its targets."""

    noun: str
    hook: str
    base: str


KINDS: dict[str, Kind] = {
    "encoder": Kind("encoder", "geoframe_encoders", "geoframe.encoder:Encoder"),
    "probeset": Kind("probe set", "geoframe_probesets", "geoframe.probeset:ProbeSet"),
    "probe": Kind("probe", "geoframe_probes", "geoframe.probe:Probe"),
    "study": Kind("study", "geoframe_studies", "geoframe.study:Study"),
    "figure": Kind("figure", "geoframe_figures", "geoframe.figures.figure:Figure"),
    "engine": Kind("engine", "geoframe_engines", "geoframe.engines.engine:Engine"),
}


class Hooks:
    """The hooks of group `geoframe`. None takes an argument; each yields `Entry` records."""

    @hookspec
    def geoframe_encoders(self) -> Iterable[Entry]:
        """Offer encoders: subclasses of `geoframe.Encoder`.

        Examples
        --------
        .. code-block:: python

            import geoframe as gf

            @gf.hookimpl
            def geoframe_encoders():
                yield gf.Entry("open-clip", "my_package.clip:OpenClipEncoder", "image towers of OpenCLIP")

        where `my_package/clip.py` holds

        .. code-block:: python

            import attrs
            import geoframe as gf

            @attrs.frozen(kw_only=True)
            class OpenClipEncoder(gf.Encoder):
                \"\"\"The image tower of an OpenCLIP model.\"\"\"
                model: str

                def build(self):
                    import open_clip
                    tower = open_clip.create_model(self.model).visual
                    return gf.Network(features=tower, input_shape=(3, 224, 224), mean=0.5, std=0.5)
        """
        raise NotImplementedError

    @hookspec
    def geoframe_probesets(self) -> Iterable[Entry]:
        """Offer probe sets: subclasses of `geoframe.ProbeSet`.

        Examples
        --------
        .. code-block:: python

            import geoframe as gf

            @gf.hookimpl
            def geoframe_probesets():
                yield gf.Entry("greys", "my_package.greys:Greys", "flat grey images")

        where `my_package/greys.py` holds

        .. code-block:: python

            import attrs
            import geoframe as gf

            @attrs.frozen(kw_only=True)
            class Greys(gf.ProbeSet):
                \"\"\"Flat grey images, from black to white.\"\"\"
                n: int = 5

                def records(self):
                    from PIL import Image
                    for i in range(self.n):
                        grey = round(255 * i / max(self.n - 1, 1))
                        yield gf.Record(f"grey-{grey}", -1, Image.new("RGB", (256, 256), (grey,) * 3))
        """
        raise NotImplementedError

    @hookspec
    def geoframe_probes(self) -> Iterable[Entry]:
        """Offer probes: subclasses of `geoframe.Probe`.

        Examples
        --------
        .. code-block:: python

            import geoframe as gf

            @gf.hookimpl
            def geoframe_probes():
                yield gf.Entry("norm", "my_package.norm:FeatureNorm", "length of the feature vector")

        where `my_package/norm.py` holds

        .. code-block:: python

            import attrs
            import geoframe as gf

            @attrs.frozen(kw_only=True)
            class FeatureNorm(gf.Probe):
                \"\"\"Length of the feature vector.\"\"\"
                version = "1"
                outputs = {"norm": gf.Output(dims=(), units="feature L2")}

                def measure(self, encoder, batch):
                    return {"norm": encoder.features(batch.images).norm(dim=1)}
        """
        raise NotImplementedError

    @hookspec
    def geoframe_studies(self) -> Iterable[Entry]:
        """Offer studies: subclasses of `geoframe.Study`, which `geoframe run NAME` finds by name.

        Examples
        --------
        .. code-block:: python

            import geoframe as gf

            @gf.hookimpl
            def geoframe_studies():
                yield gf.Entry("resnets", "my_package.resnets:ResNets", "the response ratio of two ResNets")

        where `my_package/resnets.py` holds

        .. code-block:: python

            import geoframe as gf

            class ResNets(gf.Study):
                \"\"\"The response ratio of two ResNets.\"\"\"
                encoders = tuple(gf.TorchvisionEncoder(name) for name in ("resnet18", "resnet34"))
                probesets = (gf.Photos(),)
                probes = (gf.RatioProbe(),)
        """
        raise NotImplementedError

    @hookspec
    def geoframe_figures(self) -> Iterable[Entry]:
        """Offer figures: subclasses of `geoframe.Figure`, drawn from stored results only.

        Examples
        --------
        .. code-block:: python

            import geoframe as gf

            @gf.hookimpl
            def geoframe_figures():
                yield gf.Entry("norm-bars", "my_package.bars:NormBars", "mean feature length of each encoder")

        where `my_package/bars.py` holds

        .. code-block:: python

            import attrs
            import geoframe as gf

            @attrs.frozen(kw_only=True)
            class NormBars(gf.Figure):
                \"\"\"Mean feature length of each encoder.\"\"\"
                probe: str = "featurenorm"

                def draw(self, tree):
                    from matplotlib.figure import Figure
                    norms = tree[self.probe]["norm"].mean(["probeset", "image"])
                    figure = Figure()
                    figure.subplots().bar(norms["encoder"].values, norms.values)
                    return {"norm-bars": figure}
        """
        raise NotImplementedError

    @hookspec
    def geoframe_engines(self) -> Iterable[Entry]:
        """Offer engines: subclasses of `geoframe.engines.engine.Engine`, which compute the cells of a run.

        Examples
        --------
        .. code-block:: python

            import geoframe as gf

            @gf.hookimpl
            def geoframe_engines():
                yield gf.Entry("aloud", "my_package.aloud:AloudEngine", "serial, and prints every event")

        where `my_package/aloud.py` holds

        .. code-block:: python

            from geoframe.engines.serial import SerialEngine

            class AloudEngine(SerialEngine):
                \"\"\"Serial, and prints every event.\"\"\"

                def run(self, jobs):
                    for event in super().run(jobs):
                        print(type(event).__name__, event.job.cell.names)
                        yield event
        """
        raise NotImplementedError
