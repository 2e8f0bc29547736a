"""geoframe: how a learned image encoder reacts when its input moves a finite distance.

Public names load on first use, so that `import geoframe` stays light (no torch until something is measured).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "geoframe.errors": "GeoframeError BadInput MissingFile EncoderRefused StoreConflict UnknownName",
    "geoframe.spec": "Spec unkeyed",
    "geoframe.plugins": "Entry hookimpl",
    "geoframe.registry": "Registry",
    "geoframe.attacks": "Attack CarliniWagner DDN DeepFool IFGSM PGD",
    "geoframe.encoder": "Encoder Network",
    "geoframe.encoders.module": "ModuleEncoder",
    "geoframe.encoders.factory": "FactoryEncoder",
    "geoframe.encoders.timm": "TimmEncoder",
    "geoframe.encoders.torchvision": "TorchvisionEncoder",
    "geoframe.encoders.checkpoint": "CheckpointEncoder",
    "geoframe.encoders.lite0": "EfficientNetLite0",
    "geoframe.training.recipe": "Training",
    "geoframe.training.encoder": "TrainedEncoder",
    "geoframe.training.losses": "LossSpec CrossEntropy AdversarialL2",
    "geoframe.training.margin_losses": "Expand Restrict",
    "geoframe.training.schedules": "log_steps",
    "geoframe.training.curve": "training_curve",
    "geoframe.loaded": "LoadedEncoder",
    "geoframe.probeset": "ProbeSet Images Listing Record",
    "geoframe.probesets.photos": "Photos",
    "geoframe.probesets.folder": "ImageFolder",
    "geoframe.probesets.imagenet": "ImageNetVal ImageNetA ImageNetO ImageNetSD",
    "geoframe.probesets.torchvision": "TorchvisionSet",
    "geoframe.probesets.digits": "Digits",
    "geoframe.probesets.cifar": "Cifar10Jpeg cifar10 stand_in_note",
    "geoframe.probesets.crops": "PhotoCrops",
    "geoframe.probesets.noise": "NoiseSet NoiseImages",
    "geoframe.probesets.tensor": "TensorSet",
    "geoframe.probesets.blurred": "Blurred",
    "geoframe.probesets.resized": "Resized",
    "geoframe.probesets.subset": "Subset",
    "geoframe.probesets.longtail": "LongTail",
    "geoframe.probesets.relabelled": "PermutedLabels RandomLabels MappedLabels",
    "geoframe.probesets.true_labels": "TrueLabels",
    "geoframe.probesets.published": "cifar_evaluation_sets cifar_training_sets photo_evaluation_sets",
    "geoframe.probe": "Probe Output Batch",
    "geoframe.probes.ratio": "RatioProbe CIFAR_SCALES IMAGENET_SCALES",
    "geoframe.probes.gi": "GIProbe",
    "geoframe.probes.bounds": "BoundsProbe",
    "geoframe.probes.jacobian": "JacobianProbe",
    "geoframe.probes.trajectory": "TrajectoryProbe",
    "geoframe.probes.alignment": "AlignmentProbe",
    "geoframe.probes.linearity": "LinearityProbe",
    "geoframe.probes.coverage": "RayCoverageProbe",
    "geoframe.probes.tube": "TubeProbe",
    "geoframe.probes.responses": "ResponseProbe FINE_SCALES",
    "geoframe.probes.isotropic": "IsotropicGIProbe",
    "geoframe.probes.local": "LocalGeometryProbe",
    "geoframe.probes.distance": "BoundaryDistanceProbe",
    "geoframe.study": "Study",
    "geoframe.runner": "run",
    "geoframe.store": "open",
    "geoframe.measuring": "measure",
    "geoframe.figures.figure": "Figure",
    "geoframe.figures.profiles": "RatioProfiles",
    "geoframe.figures.grid": "RatioGrid",
    "geoframe.figures.adversarial": "BudgetProfiles",
    "geoframe.figures.budget_trends": "BudgetTrends",
    "geoframe.figures.coverage": "CoverageDesign CoverageByOutcome",
    "geoframe.figures.expansion": "ExpansionCurves",
    "geoframe.figures.seeds": "CoverageRuns",
    "geoframe.figures.attacks": "AttackCoverage AlignmentCurves",
    "geoframe.figures.formation": "FormationProfiles",
    "geoframe.figures.controls": "ControlProfiles",
    "geoframe.figures.tube": "TubeRadii",
    "geoframe.figures.spectrum": "SpectrumProfiles",
    "geoframe.figures.bounds": "BoundsScatter",
    "geoframe.figures.bridge": "BridgeScatter BridgeForest",
    "geoframe.figures.interventions": "InterventionCourses",
    "geoframe.figures.long_tail": "LongTailFlows LongTailCoverage",
    "geoframe.figures.ood": "OodCoverage",
    "geoframe.summaries.bump": "BumpSummary",
    "geoframe.summaries.adversarial": "AdversarialClaims",
    "geoframe.summaries.adversarial_table": "AdversarialSummary",
    "geoframe.summaries.formation_table": "FormationSummary",
    "geoframe.summaries.formation": "FormationClaims",
    "geoframe.summaries.blurring": "BlurClaims",
    "geoframe.summaries.randomised": "RandomisedClaims",
    "geoframe.summaries.profile_table": "ProfileSummary",
    "geoframe.summaries.coverage": "CoverageSummary CoverageTests",
    "geoframe.summaries.expansion": "ExpansionSummary",
    "geoframe.summaries.expansion_claims": "ExpansionClaims",
    "geoframe.summaries.seeds": "SeedSummary",
    "geoframe.summaries.seed_claims": "SeedClaims",
    "geoframe.summaries.attacks": "AttackSummary",
    "geoframe.summaries.attack_claims": "AttackClaims",
    "geoframe.summaries.tube": "TubeSummary",
    "geoframe.summaries.spectrum": "SpectrumSummary SpectrumClaims",
    "geoframe.summaries.bounds": "BoundsSummary",
    "geoframe.summaries.bridge": "BridgeSummary",
    "geoframe.summaries.interventions": "InterventionSummary",
    "geoframe.summaries.intervention_claims": "InterventionClaims",
    "geoframe.summaries.random_labels": "RandomLabelClaims",
    "geoframe.summaries.long_tail": "LongTailSummary",
    "geoframe.summaries.long_tail_claims": "LongTailClaims",
    "geoframe.summaries.ood": "OodClaims",
    "geoframe.summaries.claim_table": "Claim Claims",
    "geoframe.summary": "Summary",
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names.split()}
_SUBMODULES = ("figures", "statistics", "testing")

__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"geoframe.{name}")
    if name not in _MODULE_OF:
        from geoframe.errors import did_you_mean

        hint = "" if name.startswith("_") else did_you_mean(name, _MODULE_OF)
        raise AttributeError(f"module 'geoframe' has no attribute {name!r}{hint}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_SUBMODULES})
