"""Steps of a training: how many there are, at which learning rate, and which to keep. Imports no torch."""

from __future__ import annotations

import math

from geoframe.errors import BadInput

SCHEDULES = ("constant", "cosine")


def learning_rate(schedule: str, lr: float, step: int, total: int) -> float:
    r"""Return the learning rate of one optimiser step.

    Parameters
    ----------
    schedule : {"constant", "cosine"}
        Cosine decays per step to zero over all steps (*Beyond Local Linearity*, A.2):
        :math:`\tfrac12 \mathrm{lr}\,(1 + \cos(\pi\,\mathrm{step}/\mathrm{total}))`. The first step has `lr`; zero would
        be that of the step after the last one.
    lr : float
    step : int
        Steps done before, 0 … total − 1.
    total : int
        Of the whole training.
    """
    return lr if schedule == "constant" else lr * (1 + math.cos(math.pi * step / total)) / 2


def steps_per_epoch(images: int, batch: int) -> int:
    """Return the number of batches, the last smaller one included, but for one of a single image beside others.

    391 for 50,000 images and batches of 128: 39,100 steps in 100 epochs, as in *Beyond Local Linearity*, A.2.
    """
    whole, rest = divmod(images, batch)
    return whole + (rest > 1 or (rest == 1 and whole == 0))


def log_steps(total: int, per_decade: int = 4) -> tuple[int, ...]:
    """Return steps 1 … total, spaced about evenly in the logarithm: a schedule of checkpoints.

    *Beyond Local Linearity* (A.2) keeps "an approximately logarithmic step schedule", without numbers: these are ours.
    The initial weights (step 0) need no checkpoint.

    Parameters
    ----------
    total : int
        Steps of the whole training, which is the last one; `Training.steps` tells it.
    per_decade : int
        Steps between each power of ten and the next; small ones that round to the same step are one.

    Examples
    --------
    >>> log_steps(391, per_decade=2)
    (1, 3, 10, 32, 100, 316, 391)
    """
    if total < 1 or per_decade < 1:
        raise BadInput(f"log_steps({total!r}, per_decade={per_decade!r}): both should be whole numbers, 1 or more")
    decades = range(math.ceil(per_decade * math.log10(total)))
    return tuple(sorted({*(round(10 ** (k / per_decade)) for k in decades), total}))
