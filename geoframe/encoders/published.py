"""The encoders of both papers whose weights are files on their authors' pages, ready-made.

The layouts of the files are as their authors' own loaders read them; ImageNet-SD's, which has no public loader, is
taken to be a ResNet-50 state dict in torchvision's names, wrapped or not, with or without its classifier.
"""

from __future__ import annotations

from geoframe.encoders.checkpoint import CheckpointEncoder
from geoframe.encoders.factory import FactoryEncoder
from geoframe.encoders.timm import TimmEncoder
from geoframe.encoders.torchvision import IMAGENET_MEAN, IMAGENET_STD, TorchvisionEncoder
from geoframe.errors import BadInput
from geoframe.probeset import ProbeSet

#: ε (L2, in [0, 1] pixels at 224×224) of the public family. Paper A doesn't list the ones it measured.
EPSILONS = (0.0, 0.01, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 5.0)
_ROBUST = "https://huggingface.co/madrylab/robust-imagenet-models"
_SYNCLR = (
    "https://www.dropbox.com/scl/fi/ogktmm26yojhlgsbwqqti/synclr_vit_b_16.pth?rlkey=2bn6j4upcrqy93d5b9fgrrj02&dl=1"
)
_RESNET20 = "https://github.com/akamaster/pytorch_resnet_cifar10"
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def _resnet50() -> TorchvisionEncoder:
    return TorchvisionEncoder("resnet50", weights=None)


def robust_resnet50(epsilon: float) -> CheckpointEncoder:
    """ResNet-50 trained adversarially within an L2 ball (Salman et al. 2020); its baseline is ε = 0.

    Parameters
    ----------
    epsilon : float
        Radius, one of `EPSILONS`.
    """
    if epsilon not in EPSILONS:
        raise BadInput(
            f"no robust ResNet-50 with ε = {epsilon:g}: the family has {', '.join(f'{e:g}' for e in EPSILONS)}"
        )
    stem = f"resnet50_l2_eps{epsilon:g}"
    return CheckpointEncoder(
        _resnet50(),
        name=stem,
        url=f"{_ROBUST}/resolve/main/{stem}.ckpt",
        page=_ROBUST,
        nested="model",
        # the training wrapper keeps a second reference to the network in its attacker, and a normaliser in each
        rename={r"^module\.(attacker|normalizer)\.": None, r"^module\.model\.": ""},
        training="adversarial-l2",
        epsilon=epsilon,
    )


def imagenet_sd_resnet50() -> CheckpointEncoder:
    """ResNet-50 trained on Stable Diffusion's clone of ImageNet-1k (Sariyildiz et al. 2023)."""
    return CheckpointEncoder(
        _resnet50(),
        name="resnet50_imagenet_sd",
        file="imagenet_1k_sd_resnet50.pth",
        page="https://europe.naverlabs.com/imagenet-sd (the ImageNet-1K-SD model)",
        rename={r"^(module\.|model\.|backbone\.|encoder\.|base_encoder\.)+": "", r"^(projector|predictor)\.": None},
        training="imagenet-sd",
    )


def synclr_vit_b16() -> CheckpointEncoder:
    """SynCLR ViT-B/16, trained on synthetic images and captions (Tian et al. 2023): class token, no classifier.

    Its authors' evaluation normalises with CLIP's mean and std.
    """
    return CheckpointEncoder(
        TimmEncoder("vit_base_patch16_224", pretrained=False, model_kwargs={"num_classes": 0}),
        name="vit_base_patch16_synclr",
        file="synclr_vit_b_16.pth",
        url=_SYNCLR,
        page="https://github.com/google-research/syn-rep-learn/tree/main/SynCLR",
        rename={r"^(module\.)?visual\.": "", r"^head\.": None},
        mean=CLIP_MEAN,
        std=CLIP_STD,
        training="synclr",
    )


def cifar_resnet20(trained_on: ProbeSet | None = None) -> CheckpointEncoder:
    """ResNet-20 for CIFAR-10 (Idelbayev's checkpoint): 91.7 % on the test set.

    *Neural Expansion* (I.3) has one from PyTorch's hub, and doesn't say which.

    Parameters
    ----------
    trained_on : ProbeSet or None
        Training images, for probes that draw from them.
    """
    architecture = FactoryEncoder("geoframe.models.cifar_resnet:resnet20", input_shape=(3, 32, 32), training="random")
    return CheckpointEncoder(
        architecture,
        name="cifar_resnet20",
        file="resnet20-12fca82f.th",
        url=f"{_RESNET20}/raw/master/pretrained_models/resnet20-12fca82f.th",
        page=_RESNET20,
        sha256="12fca82f0bebc4135bf1f32f6e3710e61d5108578464b84fd6d7f5c1b04036c8",
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        training="cifar10",
        extra_coords={"dataset": "CIFAR10"},
        trained_on=trained_on,
    )


def imagenette_vit_b16(trained_on: ProbeSet | None = None) -> CheckpointEncoder:
    """ViT-B/16 with ImageNet's 1000 classes (*Neural Expansion*, I.3), to be measured on Imagenette.

    The paper says "pre-trained" only; torchvision's IMAGENET1K_V1 is our choice.

    Parameters
    ----------
    trained_on : ProbeSet or None
        Training images, labelled by ImageNet's classes (`geoframe.probesets.imagenette.imagenette`), for probes that
        draw from them.
    """
    return CheckpointEncoder(
        TorchvisionEncoder("vit_b_16", weights=None),
        name="imagenette_vit_b16",
        url="https://download.pytorch.org/models/vit_b_16-c867db91.pth",
        page="https://docs.pytorch.org/vision/stable/models/generated/torchvision.models.vit_b_16.html",
        sha256="c867db91",
        training="imagenet",
        extra_coords={"dataset": "Imagenette"},
        trained_on=trained_on,
    )
