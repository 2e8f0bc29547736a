"""Neural Expansion, fig. 5, I.3 and fig. 10: adversarial examples, their ray coverage and their directions."""

import geoframe as gf
from geoframe.encoders.published import cifar_resnet20, imagenette_vit_b16
from geoframe.probesets.imagenette import imagenette
from geoframe.training.published import digits_training, mnist_training


def coverage(attack: gf.Attack | None = None) -> gf.RayCoverageProbe:
    """Rays from the whole pool: of CIFAR-10 and Imagenette, the images that the encoder names as its training set."""
    return gf.RayCoverageProbe(n_reference=None, attack=attack)


class Attacks(gf.Study):
    """Attacked images stay covered by training images of their predicted class (Neural Expansion, fig. 5, I.3)."""

    match = "dataset"
    encoders = (
        gf.TrainedEncoder(mnist_training("mlp")),
        cifar_resnet20(gf.Subset(gf.TorchvisionSet("CIFAR10", split="train"), per_class=200)),
        imagenette_vit_b16(gf.Subset(imagenette("train"), per_class=100)),
    )
    probesets = (
        gf.Subset(gf.TorchvisionSet("MNIST"), per_class=20),
        gf.Subset(gf.TorchvisionSet("CIFAR10"), per_class=10),
        gf.Subset(imagenette("val"), per_class=5),
    )
    probes = (
        coverage(),
        coverage(gf.CarliniWagner()),
        coverage(gf.IFGSM()),
        coverage(gf.PGD()),
        gf.AlignmentProbe(),
        gf.AlignmentProbe(vectors="difference"),
        gf.AlignmentProbe(vectors="attack", attack=gf.PGD()),
    )
    summaries = (gf.AttackSummary(), gf.AttackClaims())
    figures = (gf.AttackCoverage(), gf.AlignmentCurves())
    presets = {
        "quick": {
            "encoders": (gf.TrainedEncoder(digits_training("mlp")),),
            "probesets": (gf.Subset(gf.Digits(), per_class=8),),
            "probes.coverage*.n_reference": 30,
            "probes.coverage*.step": 0.02,
        },
        "small": {  # 5 epochs instead of 30, fewer images and rays, 200 iterations of cw instead of 1000
            "encoders": (
                gf.TrainedEncoder(mnist_training("mlp", epochs=5)),
                cifar_resnet20(gf.Subset(gf.cifar10("train", stand_in=True), per_class=50)),
            ),
            "probesets": (
                gf.Subset(gf.TorchvisionSet("MNIST"), per_class=5),
                gf.Subset(gf.cifar10("test", stand_in=True), per_class=3),
            ),
            "probes.coverage*.n_reference": 30,
            "probes.coverage*.step": 0.02,
            "probes.coverage-cw.attack.steps": 200,
        },
        "smoke": {  # no ViT-B: its Jacobian takes minutes
            "encoders": (gf.TrainedEncoder(mnist_training("mlp")).smoke(), cifar_resnet20().smoke()),
        },
    }
