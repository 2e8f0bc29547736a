"""Beyond Local Linearity, fig. 1c: the bump is absent at first, forms early in training and stays."""

import geoframe as gf
from geoframe.training.published import cifar_training, photo_training, through_training

STEPS = gf.log_steps(39100)  # kept; the paper gives no numbers: these are ours
SETS = gf.cifar_evaluation_sets()
SMALL = gf.cifar_evaluation_sets(n=16, stand_in=True, trained_on=5000)
PHOTOS = gf.photo_evaluation_sets(n=12)
JPEG = gf.stand_in_note(SMALL["cifar16"])
WIDE = "η to 100 instead of 14, chosen after a run in which the peaks were at or beyond 14."
SHORT = f"{JPEG} A quarter of the channels, 15 epochs on 5,000 images: what takes longer can't be seen. {WIDE}".strip()
CROPS = "A quarter of the channels, 290 steps on crops of six photographs: too little training to judge the claims by."


def small(architecture: str) -> gf.Training:
    """A quarter of the channels, 5,000 images, 15 epochs."""
    return cifar_training(architecture, width=0.25, n=5000, stand_in=True, epochs=15)


class Formation(gf.Study):
    """The bump is absent at first, forms early in training and stays (Beyond Local Linearity, fig. 1c)."""

    encoders = (  # every second of the kept steps is measured
        *through_training(cifar_training("resnet18", checkpoint_steps=STEPS), gf.log_steps(39100, per_decade=2)),
        *through_training(cifar_training("vgg16", checkpoint_steps=STEPS), gf.log_steps(39100, per_decade=2)),
        *through_training(cifar_training("wrn28_10", checkpoint_steps=STEPS), gf.log_steps(39100, per_decade=2)),
    )
    probesets = (SETS["cifar32"], SETS["cifar32train"])
    probes = (gf.RatioProbe(scales=gf.CIFAR_SCALES),)
    summaries = (gf.FormationSummary(), gf.FormationClaims())
    figures = (gf.FormationProfiles(),)
    presets = {
        "quick": {
            "encoders": through_training(photo_training("resnet18", width=0.25), gf.log_steps(290, per_decade=2)),
            "probesets": (PHOTOS["photo12"], PHOTOS["photo12train"]),
            "probes.ratio.directions": 32,
            "probes.ratio.jvp_directions": 16,
            "summaries.formation-claims.note": CROPS,
            "figures.fig1c.note": CROPS,
        },
        "small": {
            "encoders": (
                *through_training(small("resnet18"), gf.log_steps(600, per_decade=2)),
                *through_training(small("vgg16"), gf.log_steps(600, per_decade=2)),
            ),
            "probesets": (SMALL["cifar16"], SMALL["cifar16train"]),
            "probes.ratio.scales": gf.IMAGENET_SCALES,
            "probes.ratio.directions": 48,
            "probes.ratio.jvp_directions": 24,
            "summaries.formation-claims.note": SHORT,
            "figures.fig1c.note": SHORT,
        },
        "smoke": {  # an eighth of the channels: WRN-28-10 takes minutes
            "encoders": tuple(
                encoder.smoke()
                for name in ("resnet18", "vgg16", "wrn28_10")
                for encoder in through_training(cifar_training(name, width=0.125), (1,))
            ),
        },
    }
