"""`TimmEncoder`: any model of timm, pretrained or random."""

from __future__ import annotations

from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import Any

import attrs

from geoframe.encoder import Coord, Encoder, Shape, as_shape
from geoframe.encoders.building import clean_build
from geoframe.encoders.model import Model, ModelEncoder, as_dict
from geoframe.encoders.weights import file_sha256, first_file, weights_folder
from geoframe.errors import BadInput, MissingFile, UnknownName, did_you_mean


@attrs.frozen(slots=False, eq=False)
class TimmEncoder(ModelEncoder):
    """A model of timm; its input size, mean and std are timm's for that name, also for a random copy.

    Pretrained weights are `$GEOFRAME_DATA/weights/<model>.safetensors` (or .pth, .bin) where there is such a
    file, and otherwise what timm downloads.

    Attributes
    ----------
    model : str
        timm's name, with or without a tag ("vit_small_patch16_224.augreg_in1k"); the first argument.
    pretrained : bool
        False: timm's own initialisation, from `seed`.
    seed : int
        Seed of what is initialised at random.
    model_kwargs : mapping
        Further arguments of `timm.create_model` (num_classes, img_size, global_pool …). Pretrained weights with
        another `num_classes` than theirs get a new classifier, initialised by timm from `seed`: for fine-tuning.
    """

    model: str
    pretrained: bool = attrs.field(default=True, kw_only=True)
    seed: int = attrs.field(default=0, kw_only=True)
    model_kwargs: Mapping[str, Any] = attrs.field(factory=dict, converter=as_dict, kw_only=True)

    @property
    def architecture(self) -> str:
        """The model's name without its tag."""
        return self.model.partition(".")[0]

    def default_name(self) -> str:
        """Return the architecture, `-random` appended for a random copy."""
        return self.architecture if self.pretrained else f"{self.architecture}-random"

    @property
    def coords(self) -> dict[str, Coord]:
        """Architecture, training, weights (timm's tag), and the seed of a random copy."""
        if not self.pretrained:
            return {"architecture": self.architecture, "training": "random", "seed": self.seed}
        tag = self.model.partition(".")[2]
        training = "imagenet" if not tag or "in1k" in tag else "pretrained"
        return {"architecture": self.architecture, "training": training, "weights": tag or "timm default"}

    def randomised(self) -> Encoder:
        """Return the random copy, under this encoder's name."""
        return self.evolve(pretrained=False, name=self.label)

    def source_digest(self) -> str | None:
        """sha256 of the local file of weights; None where there is none, or none is used."""
        path = self._local_file() if self.pretrained else None
        return file_sha256(path) if path else None

    def check_source(self) -> None:
        """Refuse a name or tag that timm doesn't know, with near matches."""
        import timm

        if ":" in self.model:  # hf-hub:… and local-dir:… are looked up by timm itself
            return
        if not timm.is_model(self.model):
            raise UnknownName(
                f"timm has no model {self.architecture!r}{did_you_mean(self.architecture, timm.list_models())}"
            )
        tag = self.model.partition(".")[2]
        tags = {n.partition(".")[2] for n in timm.list_pretrained(f"{self.architecture}.*")}
        if tag and tag not in tags:
            raise UnknownName(f"timm has no weights {tag!r} of {self.architecture}{did_you_mean(tag, tags)}")

    def expected_shape(self) -> Shape | None:
        """Input size that timm has for that name, unless the spec says otherwise."""
        from timm.models import get_pretrained_cfg

        config = None if self.input_shape or ":" in self.model else get_pretrained_cfg(self.model)
        return self.input_shape if config is None else as_shape(config.input_size)

    def build_model(self) -> Model:
        """Build the model with timm, with weights from a file, timm's cache or a download."""
        from timm.data import resolve_model_data_config

        from geoframe.encoders.hub import require_hub

        self.check_source()
        if ":" in self.model:
            require_hub(self.model)
        overlay, source = self._weights() if self.pretrained else ({}, f"timm, random, seed {self.seed}")
        module = self._module(overlay)
        data = resolve_model_data_config(module)
        shape = tuple(data["input_size"])
        return self.framed(module, (shape[0], shape[1], shape[2]), tuple(data["mean"]), tuple(data["std"]), source)

    def _module(self, overlay: dict[str, Any]) -> Any:
        """Build the model; where its weights are of other classes, with a new classifier.

        timm does that too, but then takes a file of any other weights without a word.
        """
        from timm.data import resolve_model_data_config

        from geoframe.encoders.new_head import with_new_head

        if not (self.pretrained and self.model_kwargs.get("num_classes")):
            return self._create(self.pretrained, overlay, self.model_kwargs)
        rest = {key: value for key, value in self.model_kwargs.items() if key != "num_classes"}
        whole = self._create(True, overlay, rest)
        if whole.num_classes == self.model_kwargs["num_classes"]:
            return whole
        fresh = self._create(False, {}, self.model_kwargs)
        shape = self.input_shape or resolve_model_data_config(whole)["input_size"]
        return with_new_head(whole, fresh, shape, f"timm's {self.model!r}")

    def _create(self, pretrained: bool, overlay: dict[str, Any], options: Mapping[str, Any]) -> Any:
        import timm

        arguments = {"pretrained_cfg_overlay": overlay} if overlay else {}
        try:
            with clean_build(self.seed):
                module = timm.create_model(self.model, pretrained, **arguments, **options)
        except BadInput:
            raise
        except OSError as error:
            raise MissingFile(f"timm can't get {self.model!r}: {error}") from error
        except (TypeError, ValueError, RuntimeError, AssertionError) as error:
            raise BadInput(f"timm can't build {self.model!r}: {error}") from error
        getattr(module, "pretrained_cfg", {}).pop("state_dict", None)  # or every copy of the model copies it too
        return module

    def _local_file(self) -> Path | None:
        folder, name = weights_folder(), self.model.partition(".")[0]
        endings = (".safetensors", ".pth", ".bin")
        if not any(folder.glob(f"{escape(name)}.*")):  # it is asked often, and timm takes seconds to import
            return None
        return first_file(folder / f"{spelling}{ending}" for spelling in self._spellings() for ending in endings)

    def _spellings(self) -> tuple[str, ...]:
        """The name as it was given; without a tag, also with that of timm's default weights, and the other way."""
        import timm

        name, _, tag = self.model.partition(".")
        default = getattr(timm.models.get_pretrained_cfg(name), "tag", None)
        if not default or tag not in ("", default):
            return (self.model,)
        return (self.model, name if tag else f"{name}.{default}")

    def _weights(self) -> tuple[dict[str, Any], str]:
        from geoframe.encoders.hub import timm_weights
        from geoframe.encoders.reading import read_file, weights_in

        path = self._local_file() or timm_weights(self.model)
        if path is None:
            return {}, f"timm: {self.model}"
        return {"state_dict": weights_in(read_file(path), "auto", str(path))}, str(path)
