"""Beyond Local Linearity, fig. 2b and 2c: the bump depends on blur, and doesn't form under random labels or data."""

import geoframe as gf
from geoframe.training.published import cifar_training, photo_training

TREATMENTS = ("clean", "blur1", "blur2", "random-labels", "random-data")
SMALL = gf.cifar_evaluation_sets(n=16, stand_in=True, trained_on=1000)
PANELS = ("clean", "random-labels", "random-data", "initial")  # the first and the last are ours
CROPS = (
    "An eighth of the channels, 400 steps on 120 crops of six photographs: too little training to judge the claims by."
)
WIDE = "η to 100 instead of 14, chosen after a run in which the peaks were at or beyond 14."
FEW = f"A quarter of the channels, 24 epochs on 1,000 images, few enough to memorise random labels. {WIDE}"
JPEG = gf.stand_in_note(SMALL["cifar16"])
NOTE = f"{JPEG} That is a blur too. {FEW}" if JPEG else FEW


def final_and_initial(*trainings: gf.Training) -> tuple[gf.TrainedEncoder, ...]:
    """Each network trained, and the initial weights, which all of them share."""
    return *map(gf.TrainedEncoder, trainings), gf.TrainedEncoder(trainings[0], step="init")


def photos(treatment: str) -> gf.Training:
    """An eighth of the channels; so few crops, seen so often, that random labels are memorised."""
    return photo_training("resnet18", treatment, width=0.125, n=120, epochs=50, batch=16, lr=0.02)


def small(treatment: str) -> gf.Training:
    """A quarter of the channels; a thousand images."""
    return cifar_training("resnet18", treatment, width=0.25, n=1000, stand_in=True, epochs=24, batch=32, lr=0.05)


class Controls(gf.Study):
    """The bump follows blur, and doesn't form under random labels or data (Beyond Local Linearity, fig. 2b, 2c)."""

    encoders = final_and_initial(*(cifar_training("resnet18", treatment) for treatment in TREATMENTS))
    probesets = tuple(gf.cifar_evaluation_sets().values())
    probes = (gf.RatioProbe(scales=gf.CIFAR_SCALES),)
    summaries = (gf.BumpSummary(), gf.BlurClaims(), gf.RandomisedClaims())
    figures = (gf.ControlProfiles(blurs=True), gf.ControlProfiles(treatments=PANELS))
    presets = {
        "quick": {
            "encoders": final_and_initial(*(photos(t) for t in TREATMENTS)),
            "probesets": tuple(gf.photo_evaluation_sets(n=12).values()),
            "probes.ratio.directions": 24,
            "probes.ratio.jvp_directions": 12,
            "summaries.randomised-claims.chance": 1 / 6,
            "summaries.*-claims.note": CROPS,
            "figures.*.note": CROPS,
        },
        "small": {
            "encoders": final_and_initial(*map(small, TREATMENTS)),
            "probesets": tuple(SMALL.values()),
            "probes.ratio.scales": gf.IMAGENET_SCALES,
            "probes.ratio.directions": 32,
            "probes.ratio.jvp_directions": 16,
            "summaries.*-claims.note": NOTE,
            "figures.*.note": NOTE,
        },
    }
