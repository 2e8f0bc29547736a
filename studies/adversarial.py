"""Beyond Local Linearity, figures 2a and 5: adversarial training moves the bump outward."""

import geoframe as gf
from geoframe.encoders.published import EPSILONS, robust_resnet50
from geoframe.training.published import adversarial_family, cifar_training, photo_training

VAL64 = gf.ImageNetVal(n=64, seed=0)
CIFAR32 = gf.cifar_evaluation_sets(stand_in=True)["cifar32"]
# a peak that moves 10–30× outward leaves the paper's ladder for CIFAR-10
LADDER = (*gf.CIFAR_SCALES, *(10 ** (1.4 + k / 4) for k in range(4)))
OWN = (
    "Small networks of our own stand in for the public ImageNet family, whose weights are files: only the signs can be "
    "compared. The ladder is the paper's for CIFAR-10, to η = 14, and a decade beyond."
)
CROPS = (
    "Crops of six photographs are smooth and soon learned: where even ε = 0 has no peak on the ladder, none can move."
)


def drawn(note: str) -> tuple[gf.Figure, ...]:
    """Fig. 2a, what it says of m̃ and the peak, and fig. 5, over a note."""
    return (
        gf.BudgetProfiles(note=note),
        gf.BudgetTrends(note=note),
        gf.RatioGrid(name="fig5_adversarial", note=note),
    )


class Adversarial(gf.Study):
    """Adversarial training moves the peak 10–30× outward, by a lower prediction (Beyond Local Linearity, fig. 2a)."""

    encoders = tuple(robust_resnet50(epsilon) for epsilon in EPSILONS)
    probesets = (
        VAL64,
        gf.ImageNetA(n=64, seed=0),
        gf.ImageNetO(n=64, seed=0),
        gf.ImageNetSD(n=64, seed=0),
        gf.Blurred(VAL64, sigma=2, at=512, name="blur64"),
    )
    probes = (gf.RatioProbe(),)
    summaries = (gf.AdversarialSummary(), gf.AdversarialClaims())
    figures = drawn("The paper doesn't list the ε that it measured: these are all of the public family.")
    presets = {
        "quick": {
            "encoders": adversarial_family(photo_training("resnet18", n=600, width=0.125), (0, 0.25, 1), steps=3),
            "probesets": (gf.PhotoCrops(n=24),),
            "probes.ratio.scales": LADDER,
            "probes.ratio.directions": 64,
            "probes.ratio.jvp_directions": 32,
            "figures": drawn(f"{OWN} {CROPS}"),
        },
        "small": {  # 4 epochs of a narrow network instead of 100, attacks of 3 steps
            "encoders": adversarial_family(
                cifar_training("resnet18", width=0.125, epochs=4, stand_in=True), (0, 0.25, 1), steps=3
            ),
            "probesets": (CIFAR32,),
            "probes.ratio.scales": LADDER,
            "probes.ratio.directions": 256,
            "probes.ratio.jvp_directions": 128,
            "figures": drawn(f"{OWN} {gf.stand_in_note(CIFAR32)}".strip()),
        },
    }
