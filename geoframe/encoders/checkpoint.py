"""`CheckpointEncoder`: an architecture, and a file of weights from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import attrs

from geoframe.encoder import Coord, Encoder, Network
from geoframe.encoders.model import Model, ModelEncoder, as_dict
from geoframe.encoders.weights import check_sha256, download, file_sha256, first_file, weights_folder
from geoframe.errors import BadInput, MissingFile
from geoframe.probeset import ProbeSet
from geoframe.spec import later, unkeyed


def _rules(value: Any) -> tuple[tuple[str, str | None], ...]:
    """Keep the order of the rules, which a mapping's key would lose."""
    return tuple((str(a), b) for a, b in (value.items() if isinstance(value, Mapping) else value))


def _unweighted(value: Any) -> Any:
    """An architecture's own weights would be replaced: they are neither downloaded nor part of the key."""
    return value.randomised() if isinstance(value, ModelEncoder) else value


def _check_architecture(_spec: object, _field: object, value: Any) -> None:
    if not isinstance(value, ModelEncoder):
        kind = type(value).__name__
        raise BadInput(f"CheckpointEncoder: architecture is a TimmEncoder, a TorchvisionEncoder …, not a {kind}")


@attrs.frozen(slots=False, eq=False)
class CheckpointEncoder(ModelEncoder):
    """An architecture with the weights of a file: local, or downloaded once.

    A `file` is looked for as given, then in `$GEOFRAME_DATA/weights`; where it is in neither, `url` is downloaded
    to the latter. Files are read without running code from them (safetensors, or torch's `weights_only`).

    Attributes
    ----------
    architecture : ModelEncoder
        `TimmEncoder`, `TorchvisionEncoder` or `FactoryEncoder`: what to load into; random, since all is replaced.
    file : str or None
        Path or name; by default the last part of `url`.
    url, page : str or None
        Where the file can be downloaded, and a page where a person finds it.
    sha256 : str or None
        The file's digest, or its beginning; checked before loading.
    rename : mapping of str to str or None
        Regular expressions and their replacements, applied in order to every key; None, or an empty result, drops
        the key. The usual wrappers' prefixes ("module." …) go by themselves, where every key has one.
    nested : str or None
        Key under which the file holds the state dict; "auto": found; None: the file is the state dict.
    match : "keys" or "order"
        "order": first tensor to first, whatever their names; shapes must agree.
    training : str or None
        What it was trained for or by ("imagenet", "adversarial-l2" …), a label beside the results.
    epsilon : float or None
        Radius of adversarial training, likewise.
    extra_coords : mapping
        Further such labels.
    trained_on : ProbeSet or None
        The images it was trained on, or some of them: what probes take as reference if none is given.

    Notes
    -----
    A file that lacks exactly the last linear layer gives an encoder without a head; anything else missing, left
    over or of another shape is an error.
    """

    architecture: ModelEncoder = attrs.field(converter=_unweighted, validator=_check_architecture)
    file: str | None = attrs.field(default=None, converter=attrs.converters.optional(str), kw_only=True)
    url: str | None = attrs.field(default=None, kw_only=True)
    page: str | None = unkeyed(default=None, kw_only=True)
    sha256: str | None = attrs.field(default=None, kw_only=True)
    rename: tuple[tuple[str, str | None], ...] = attrs.field(default=(), converter=_rules, kw_only=True)
    nested: str | None = attrs.field(default="auto", kw_only=True)
    match: str = attrs.field(default="keys", kw_only=True)
    training: str | None = unkeyed(default=None, kw_only=True)
    epsilon: float | None = unkeyed(default=None, kw_only=True)
    extra_coords: Mapping[str, Coord] = unkeyed(factory=dict, converter=as_dict, kw_only=True)
    trained_on: ProbeSet | None = later(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(ProbeSet)), kw_only=True
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if not (self.file or self.url):
            raise BadInput("CheckpointEncoder needs file='…' or url='…': the weights")
        if self.url is not None and urlparse(self.url).scheme not in ("https", "http", "ftp", "file"):
            raise BadInput(f"CheckpointEncoder: url={self.url!r} is no address: write https://…")
        if not self.file_name:
            raise BadInput(f"CheckpointEncoder: url={self.url!r} ends in no file name: say file='…' too")
        if self.match not in ("keys", "order"):
            raise BadInput(f"CheckpointEncoder: match is 'keys' or 'order', not {self.match!r}")

    def default_name(self) -> str:
        """Return the architecture."""
        return str(self.architecture.coords.get("architecture", self.architecture.label))

    @property
    def coords(self) -> dict[str, Coord]:
        """Architecture, training, weights (the file's name), epsilon, and what `extra_coords` adds."""
        given = {"training": self.training, "epsilon": self.epsilon}
        return {
            "architecture": self.default_name(),
            "weights": self.file_name,
            **{name: value for name, value in given.items() if value is not None},
            **self.extra_coords,
        }

    @property
    def training_set(self) -> ProbeSet | None:
        """The images it was trained on, where that was said."""
        return self.trained_on

    @property
    def file_name(self) -> str:
        """Name of the file, without its folder."""
        return Path(self.file or urlparse(self.url or "").path).name

    def identity(self) -> dict[str, Any]:
        """What determines numbers: the weights count by their sha256, where given, wherever they lie."""
        identity = super().identity()
        if self.sha256:
            identity["fields"] |= {"file": None, "url": None}
        return identity

    def randomised(self) -> Encoder:
        """Return the architecture with random weights, framed as this encoder, under its name."""
        frame = {"input_shape": self.input_shape, "mean": self.mean, "std": self.std}
        kept = {name: value for name, value in frame.items() if value is not None}
        return self.architecture.randomised().evolve(name=self.label, **kept)

    def source_digest(self) -> str | None:
        """sha256 of the file, where it is here already."""
        path = self._local_file()
        return file_sha256(path) if path else None

    def check_source(self) -> None:
        """Refuse an architecture that can't be, and a file that neither is here nor can be downloaded."""
        from geoframe.encoders.matching import check_patterns

        check_patterns(self.rename)
        self.architecture.check_source()
        if self._local_file() is None and not self.url:
            raise self._missing()

    def missing(self) -> str:
        """Say that the file isn't here, where it can't be downloaded."""
        return "" if self.url or self._local_file() else str(self._missing())

    def build(self) -> Network:
        """Build the architecture with the file's weights."""
        network = super().build()
        network.training_set = self.trained_on
        return network

    def build_model(self) -> Model:
        """Build the architecture and load the file into it."""
        self.check_source()
        path = self._local_file() or self._download()
        check_sha256(path, self.sha256)
        model = self.architecture.build_model()
        model.headless = self._load(model, path)
        return attrs.evolve(
            self.framed(model.module, model.input_shape, model.mean, model.std, str(path)), headless=model.headless
        )

    def _load(self, model: Model, path: Path) -> bool:
        """Load the file; return whether it lacks the last linear layer."""
        from geoframe.encoders.matching import fit, in_order, renamed, stripped
        from geoframe.encoders.reading import read_file, weights_in
        from geoframe.encoders.split import find_head

        where = str(path)
        weights = renamed(weights_in(read_file(path), self.nested, where), self.rename, where)
        wanted = model.module.state_dict()
        weights = in_order(weights, wanted, where) if self.match == "order" else stripped(weights, wanted)
        lacks_some = self.head == "auto" and any(key not in weights for key in wanted)
        name = find_head(model.module, model.input_shape) if lacks_some else None
        own = {key for key in wanted if name and key.rpartition(".")[0] == name}
        return bool(fit(model.module, weights, own, where))

    def _local_file(self) -> Path | None:
        given = [Path(self.file).expanduser()] if self.file else []
        return first_file([*given, *(weights_folder() / path for path in given), weights_folder() / self.file_name])

    def _download(self) -> Path:
        assert self.url is not None
        what = f"weights of {self.label!r}" + (f" (see {self.page})" if self.page else "")
        return download(self.url, weights_folder() / self.file_name, what, self.sha256)

    def _missing(self) -> MissingFile:
        places = [str(self.file)] if self.file else []
        looked = " nor at ".join(dict.fromkeys([*places, str(weights_folder() / self.file_name)]))
        advice = f"get it from {self.page}" if self.page else "correct the path"
        return MissingFile(f"weights of {self.label!r}: no file at {looked}: {advice}, or set GEOFRAME_DATA")
