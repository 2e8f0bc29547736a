"""A pretrained model with a classifier for other classes, as in fine-tuning."""

from __future__ import annotations

from torch import nn

from geoframe.encoders.split import find_head
from geoframe.errors import BadInput


def with_new_head(pretrained: nn.Module, fresh: nn.Module, input_shape: tuple[int, ...], what: str) -> nn.Module:
    """Return a pretrained model with the last linear layer of an untrained copy, as its library initialised that.

    Both are built by the library, so that all the other weights were read as strictly as without a new head.

    Parameters
    ----------
    pretrained, fresh : torch.nn.Module
        The same architecture, with the classes of its weights and with those wanted. The first one is changed.
    input_shape : tuple of int
        (channel, height, width).
    what : str
        The model, for messages.

    Raises
    ------
    BadInput
        Where no single linear layer makes the logits.
    """
    name = find_head(fresh, input_shape)
    if not name:
        raise BadInput(
            f"{what}: its logits aren't made by one linear layer, so pretrained weights can't be given another "
            "number of classes: leave num_classes out, or write a factory that replaces its classifier"
        )
    pretrained.set_submodule(name, fresh.get_submodule(name))
    if hasattr(fresh, "num_classes"):
        pretrained.num_classes = fresh.num_classes
    return pretrained
