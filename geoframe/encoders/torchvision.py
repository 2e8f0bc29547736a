"""`TorchvisionEncoder`: a classifier of torchvision, pretrained or random."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from geoframe.encoder import Coord, Encoder, PerChannel, Shape
from geoframe.encoders.building import clean_build
from geoframe.encoders.model import Model, ModelEncoder, as_dict
from geoframe.encoders.weights import download, file_sha256, first_file, weights_folder
from geoframe.errors import BadInput, UnknownName, did_you_mean

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def _weights_name(value: Any) -> str | None:
    """Take "IMAGENET1K_V2", "ResNet50_Weights.IMAGENET1K_V2" or torchvision's enum member."""
    return None if value is None else str(getattr(value, "name", value)).rpartition(".")[2]


@attrs.frozen(slots=False, eq=False)
class TorchvisionEncoder(ModelEncoder):
    """A classifier of torchvision (ResNet, ConvNeXt, ViT, VGG, …); mean, std and size are its weights'.

    Weights are `$GEOFRAME_DATA/weights/<file>` where there is such a file, else torch.hub's cache, else a
    download into that cache.

    Attributes
    ----------
    model : str
        torchvision's name ("resnet50"); the first argument.
    weights : str or None
        "IMAGENET1K_V2", "DEFAULT" …; None: torchvision's own initialisation, from `seed`.
    seed : int
        Seed of a random copy.
    model_kwargs : mapping
        Further arguments of torchvision's model function. Pretrained weights with another `num_classes` than theirs
        get a new classifier, initialised by torchvision from `seed`: for fine-tuning.
    """

    model: str
    weights: str | None = attrs.field(default="DEFAULT", converter=_weights_name, kw_only=True)
    seed: int = attrs.field(default=0, kw_only=True)
    model_kwargs: Mapping[str, Any] = attrs.field(factory=dict, converter=as_dict, kw_only=True)

    def default_name(self) -> str:
        """Return the architecture, `-random` appended for a random copy."""
        return self.model if self.weights else f"{self.model}-random"

    @property
    def coords(self) -> dict[str, Coord]:
        """Architecture, training, weights, and the seed of a random copy."""
        if self.weights is None:
            return {"architecture": self.model, "training": "random", "seed": self.seed}
        return {"architecture": self.model, "training": "imagenet", "weights": self.weights}

    def randomised(self) -> Encoder:
        """Return the random copy, under this encoder's name."""
        return self.evolve(weights=None, name=self.label)

    def source_digest(self) -> str | None:
        """sha256 of the file of weights under `$GEOFRAME_DATA/weights`; None where there is none."""
        if self.weights is None or not any(weights_folder().glob("*.pth")):  # so that most plans import nothing
            return None
        path = first_file([weights_folder() / _file_name(self._member().url)])
        return file_sha256(path) if path else None

    def check_source(self) -> None:
        """Refuse a model or weights that torchvision doesn't know, with near matches."""
        self._member()

    def expected_shape(self) -> Shape | None:
        """Shape of its weights' images, unless the spec says otherwise."""
        return self.input_shape or _frame(self._member())[0]

    def build_model(self) -> Model:
        """Build the model with torchvision."""
        member = self._member()
        weights = None if self.weights is None else member
        path = None if weights is None else self._file(member.url)
        shape, mean, std = _frame(member)
        module = self._module(weights, path, self.input_shape or shape)
        return self.framed(module, shape, mean, std, str(path or f"torchvision, random, seed {self.seed}"))

    def _module(self, weights: Any, path: Path | None, shape: Shape) -> Any:
        """Build the model; where its weights are of other classes, with a new classifier, which torchvision refuses."""
        from geoframe.encoders.new_head import with_new_head

        classes = self.model_kwargs.get("num_classes")
        if weights is None or classes in (None, len(weights.meta["categories"])):
            return self._create(weights, path, self.model_kwargs)
        rest = {key: value for key, value in self.model_kwargs.items() if key != "num_classes"}
        whole, fresh = self._create(weights, path, rest), self._create(None, None, self.model_kwargs)
        return with_new_head(whole, fresh, shape, f"torchvision's {self.model!r}")

    def _create(self, weights: Any, path: Path | None, options: Mapping[str, Any]) -> Any:
        import torchvision

        arguments = dict(options)
        if self.model in ("googlenet", "inception_v3") and weights is None:
            arguments.setdefault("init_weights", True)  # torchvision's default, which warns unless it is said
        try:
            with clean_build(self.seed), _reading(path):
                return torchvision.models.get_model(self.model, weights=weights, **arguments)
        except BadInput:
            raise
        except (TypeError, ValueError, RuntimeError) as error:
            raise BadInput(f"torchvision can't build {self.model!r}: {error}") from error

    def _member(self) -> Any:
        """Return torchvision's weights enum member; for a random copy the default one, whose frame it shares."""
        import torchvision

        known = torchvision.models.list_models(module=torchvision.models)
        if self.model not in known:
            raise UnknownName(f"torchvision has no model {self.model!r}{did_you_mean(self.model, known)}")
        members = torchvision.models.get_model_weights(self.model).__members__
        name = self.weights or "DEFAULT"
        if name not in members:
            raise UnknownName(
                f"torchvision has no weights {name!r} for {self.model}{did_you_mean(name, members) or ': it has none'}"
            )
        return members[name]

    def _file(self, url: str) -> Path:
        import torch

        name = _file_name(url)
        cache = Path(torch.hub.get_dir(), "checkpoints", name)
        if path := first_file([weights_folder() / name, cache]):
            return path
        digest = re.search(r"-([0-9a-f]{8,})\.", name)  # torch.hub's convention: the file name ends in its sha256
        places = f"{weights_folder() / name} or {cache}"
        return download(url, cache, f"weights of {self.model}", digest.group(1) if digest else None, places)


def _file_name(url: str) -> str:
    return url.rpartition("/")[2]


def _frame(member: Any) -> tuple[Shape, PerChannel, PerChannel]:
    """Return input shape, mean and std of a weights enum member."""
    transforms = member.transforms()
    size = transforms.crop_size[0]
    return (3, size, size), tuple(transforms.mean), tuple(transforms.std)


@contextmanager
def _reading(path: Path | None) -> Iterator[None]:
    """Let torchvision's model functions read `path`, in `weights_only` mode, where they would download."""
    from torchvision.models import WeightsEnum

    from geoframe.encoders.reading import read_file

    def read(_self: Any, *_args: Any, **_kwargs: Any) -> Any:
        return read_file(path) if path else None

    before = WeightsEnum.get_state_dict
    WeightsEnum.get_state_dict = read
    try:
        yield
    finally:
        WeightsEnum.get_state_dict = before
