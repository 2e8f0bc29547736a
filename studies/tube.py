"""Neural Expansion, F.3 and Table 6: covered rays lie in a region about as wide as they are long."""

import geoframe as gf
from geoframe.training.encoder import TrainedEncoder
from geoframe.training.published import digits_training, mnist_training


class Tube(gf.Study):
    """The region of one class around a covered ray is at least as wide as the ray is long (Neural Expansion, F.3)."""

    match = "dataset"
    encoders = (TrainedEncoder(mnist_training("cnn", "MNIST")), TrainedEncoder(mnist_training("cnn", "FashionMNIST")))
    probesets = (gf.TorchvisionSet("MNIST", n=100), gf.TorchvisionSet("FashionMNIST", n=100))
    probes = (gf.TubeProbe(),)
    summaries = (gf.TubeSummary(),)
    figures = (gf.TubeRadii(),)
    presets = {
        "quick": {
            "encoders": (TrainedEncoder(digits_training("mlp")), TrainedEncoder(digits_training("cnn"))),
            "probesets": (gf.Digits(n=100),),
            "probes.tube.rays": 50,
            "probes.tube.step": 0.02,
        },
        "small": {  # 5 epochs instead of 30; the trainings are those of coverage.py
            "encoders": (
                TrainedEncoder(mnist_training("mlp", "MNIST", epochs=5)),
                TrainedEncoder(mnist_training("cnn", "MNIST", epochs=5)),
                TrainedEncoder(mnist_training("mlp", "FashionMNIST", epochs=5)),
                TrainedEncoder(mnist_training("cnn", "FashionMNIST", epochs=5)),
            ),
        },
    }
