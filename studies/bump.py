"""Beyond Local Linearity, figures 1a, 1b, 3 and 4: trained encoders show the bump, random ones don't."""

import geoframe as gf
from geoframe.encoders.published import EPSILONS, imagenet_sd_resnet50, robust_resnet50, synclr_vit_b16

VAL64 = gf.ImageNetVal(n=64, seed=0)
LITE0 = (gf.EfficientNetLite0(), gf.EfficientNetLite0(pretrained=False))
TAIL = (
    "EfficientNet-Lite0 ends in ReLU6, which bounds its features and forces slope −2 at large η: "
    "its random copy falls where the paper's random ResNet-50 rises."
)


class Bump(gf.Study):
    """Trained encoders show the bump, randomly initialised ones show no peak (Beyond Local Linearity, fig. 1)."""

    encoders = (
        gf.TorchvisionEncoder("convnext_tiny", weights="IMAGENET1K_V1"),
        gf.TorchvisionEncoder("resnet50", weights="IMAGENET1K_V2"),
        gf.TimmEncoder("vit_small_patch16_224.augreg_in1k"),
        imagenet_sd_resnet50(),
        synclr_vit_b16(),
        *(robust_resnet50(epsilon) for epsilon in EPSILONS),
        gf.TorchvisionEncoder("convnext_tiny", weights=None),
        gf.TorchvisionEncoder("resnet50", weights=None),
        gf.TimmEncoder("vit_small_patch16_224.augreg_in1k", pretrained=False),
    )
    probesets = (
        VAL64,
        gf.ImageNetA(n=64, seed=0),
        gf.ImageNetO(n=64, seed=0),
        gf.ImageNetSD(n=64, seed=0),
        gf.Blurred(VAL64, sigma=2, at=512, name="blur64"),
    )
    probes = (gf.RatioProbe(),)
    summaries = (gf.BumpSummary(),)
    figures = (
        gf.RatioProfiles(),
        gf.RatioProfiles(median=True),
        gf.RatioGrid(training="trained"),
        gf.RatioGrid(training="random"),
    )
    presets = {
        "quick": {
            "encoders": LITE0,
            "probesets": (gf.Photos(),),
            "probes.ratio.directions": 64,
            "probes.ratio.jvp_directions": 32,
            "figures": (gf.RatioProfiles(), gf.RatioProfiles(median=True, note=TAIL)),
        },
        "small": {
            "encoders": LITE0,
            "probesets": (
                gf.ImageNetVal(n=16, seed=0),
                gf.Blurred(gf.ImageNetVal(n=16, seed=0), sigma=2, at=512, name="blur16"),
            ),
            "probes.ratio.directions": 256,
            "probes.ratio.jvp_directions": 128,
        },
    }
