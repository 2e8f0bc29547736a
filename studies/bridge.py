"""The bridge (neither paper's): does the bump's peak scale tell how far the boundary is, beyond local geometry?"""

import geoframe as gf
from geoframe.attacks import DDN, DeepFool
from geoframe.training.published import cifar_training, photo_training
from geoframe.training.states import network_states

TEST = gf.cifar10("test", n=32, stand_in=True)
NARROW = {
    "width": 0.125,
    "n": 1200,
    "stand_in": True,
    "batch": 32,
    "lr": 0.05,
}  # ResNet-18 with an eighth of the channels
CROPS = {"width": 0.125, "n": 120, "batch": 12, "lr": 0.03, "epochs": 70}
FEW = (
    "Small data: narrow networks trained on 120 crops of six photographs, one seed, 24 images. Intervals say how "
    "images vary, not how networks do: nothing can be concluded."
)
SHORT = "Narrow networks, trained on 1,200 images, two seeds, 32 images: small effects can't be seen."


class Bridge(gf.Study):
    """Does the bump's peak scale tell how far the decision boundary is, beyond local geometry? (ours)"""

    encoders = network_states(
        cifar_training("resnet18"), cifar_training("resnet18", "random-labels"), seeds=range(3), early=5
    )
    probesets = (gf.cifar10("test", n=128),)
    probes = (
        gf.ResponseProbe(directions=512),
        gf.IsotropicGIProbe(n_directions=128),
        gf.LocalGeometryProbe(),
        gf.BoundaryDistanceProbe(),
        gf.TubeProbe(rays=128, points=3, allow_none=True),
    )
    summaries = (gf.BridgeSummary(),)
    figures = (gf.BridgeScatter(), gf.BridgeForest())
    presets = {
        "quick": {
            "encoders": network_states(
                photo_training("resnet18", **CROPS),
                photo_training("resnet18", "random-labels", **CROPS),
                seeds=(0,),
                early=6,
            ),
            "probesets": (gf.PhotoCrops(n=24),),
            "probes": (
                gf.ResponseProbe(directions=24),
                gf.IsotropicGIProbe(n_directions=8),
                gf.LocalGeometryProbe(),
            ),
            "summaries.bridge.note": FEW,
            "figures.*.note": FEW,
        },
        "small": {
            "encoders": network_states(
                cifar_training("resnet18", **NARROW, epochs=20),
                cifar_training("resnet18", "random-labels", **NARROW, epochs=20),
                seeds=(0, 1),
                early=2,
            ),
            "probesets": (TEST,),
            "probes.response.directions": 48,
            "probes.isotropic-gi.n_directions": 16,
            "probes.boundary-distance.attacks": (DeepFool(), DDN(steps=20)),
            "probes.tube.rays": 16,
            "probes.tube.directions": 8,
            "probes.tube.step": 0.05,
            "probes.tube.cap": 2.0,
            "summaries.bridge.note": f"{SHORT} {gf.stand_in_note(TEST)}".strip(),
            "figures.*.note": f"{SHORT} {gf.stand_in_note(TEST)}".strip(),
        },
    }
