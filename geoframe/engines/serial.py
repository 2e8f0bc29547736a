"""`SerialEngine`: one cell after the other, in this process; an encoder is loaded once and freed."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from geoframe.cells import Record
from geoframe.engines.engine import BlockDone, Engine, Event, Failed, Finished, Job, Outdated, Started
from geoframe.errors import FAILURES
from geoframe.probeset import Images
from geoframe.sources import Sources

if TYPE_CHECKING:
    from geoframe.loaded import LoadedEncoder
    from geoframe.settings import Settings


class SerialEngine(Engine):
    """Loads an encoder, measures its cells probe set by probe set, frees it, goes on to the next."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """See `Engine.run`."""
        for group in _groups(jobs, "encoder"):
            if not all(job.complete for job in group):
                yield from self._encoder(group)
                _free()

    def _encoder(self, jobs: list[Job]) -> Iterator[Event]:
        try:
            loaded = jobs[0].cell.encoder.load(self.device)
            weights = loaded.digest
        except FAILURES as error:
            yield from _all_failed(jobs, error)
            return
        for job in jobs:
            if job.record is not None and job.record.encoder_digest != weights:
                job.restart()
                yield Outdated(job, f"the weights of encoder {job.cell.encoder.label!r} have changed")
        for group in _groups(jobs, "probeset"):
            if not all(job.complete for job in group):
                yield from self._probeset(loaded, group)

    def _probeset(self, loaded: LoadedEncoder, jobs: list[Job]) -> Iterator[Event]:
        try:
            images = jobs[0].cell.probeset.load(loaded.input_shape)
            pixels = images.digest
        except FAILURES as error:
            yield from _all_failed(jobs, error)
            return
        for job in jobs:
            if job.record is not None and job.record.images_digest != pixels:
                job.restart()
                yield Outdated(job, f"the images of probe set {job.cell.probeset.label!r} have changed")
        try:
            settings = self._prepared(loaded, images)
        except FAILURES as error:
            yield from _all_failed(jobs, error)
            return
        for job in jobs:
            if not job.complete:
                yield from self._cell(loaded, images, settings, job)

    def _prepared(self, loaded: LoadedEncoder, images: Images) -> Settings:
        """Choose the settings of new cells, and refuse what would give silently wrong numbers."""
        from geoframe.settings import choose_settings

        settings = choose_settings(loaded, self.memory)
        loaded.micro_batch = settings.micro_batch
        loaded.preflight(images.pixels)
        return settings

    def _cell(self, loaded: LoadedEncoder, images: Images, fresh: Settings, job: Job) -> Iterator[Event]:
        from geoframe.measuring import check_needs, measure_block
        from geoframe.references import forget_changed
        from geoframe.settings import choose_settings

        loaded.on_pass = self.on_pass
        try:
            changed = Sources().changed(job.cell.parts, job.record.sources) if job.record else ""
            if changed:
                job.restart()
                yield Outdated(job, changed)
            forget_changed()
            check_needs(job.cell.probe, loaded, images)
            if job.record is None and job.cell.probe.timed():
                fresh = choose_settings(loaded, self.memory, timed=True)
            settings = _settings_of(job, fresh)
            job.record = record = _record(job, loaded, images, settings)
            yield Started(job, record)
            for start, stop in record.missing(job.done):
                yield BlockDone(job, start, measure_block(job.cell.probe, loaded, images, start, stop, settings))
                job.done.add(start)
        except FAILURES as error:
            yield Failed(job, error)
        else:
            yield Finished(job)
        finally:
            loaded.on_pass = None


def _settings_of(job: Job, fresh: Settings) -> Settings:
    """Return the settings that the cell was started with, if this machine can go on with them."""
    from geoframe.settings import Settings

    if job.record is None:
        return fresh
    recorded = Settings.from_json(job.record.settings)
    same = all(getattr(recorded, name) == getattr(fresh, name) for name in ("device", "device_name", "torch", "dtype"))
    return recorded if same else fresh


def _record(job: Job, loaded: LoadedEncoder, images: Images, settings: Settings) -> Record:
    from geoframe.measuring import blocks

    cell = job.cell
    return Record(
        key=cell.key,
        names=cell.names,
        identity=cell.identity(),
        settings=settings.to_json(),
        blocks=job.record.blocks if job.record else blocks(cell.probe, len(images), loaded),
        encoder_digest=loaded.digest,
        images_digest=images.digest,
        input_shape=loaded.input_shape,
        sources=Sources().of(cell.parts),
    )


def _groups(jobs: Sequence[Job], part: str) -> list[list[Job]]:
    """Group jobs by the key of their encoder or probe set, in order of first appearance."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(getattr(job.cell, part).key, []).append(job)
    return list(groups.values())


def _all_failed(jobs: Sequence[Job], error: BaseException) -> Iterator[Event]:
    for job in jobs:
        if not job.complete:
            yield Failed(job, error)


def _free() -> None:
    """Give the memory of the last encoder back before the next is loaded."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
