"""
Metrics as Prometheus' text.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from exporter.metric_families import HISTOGRAM, Family
from exporter.metric_series import Label, Sample, Snapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def prometheus_lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield the lines of all families that have series."""
    for family, samples in snapshot:
        if not samples:
            continue
        yield f"# HELP {family.name} {family.meaning}"
        yield f"# TYPE {family.name} {family.kind}"
        for sample in samples:
            yield from _series(family, sample)


def _series(family: Family, sample: Sample) -> Iterator[str]:
    labels = _labels(family, sample.label)
    if family.kind != HISTOGRAM:
        yield f"{family.name}{_braced(labels)} {sample.counts[0]}"
        return
    bounds = [*(format(each / family.unit, "g") for each in family.bounds), "+Inf"]
    for bound, count in zip(bounds, accumulate(sample.counts), strict=True):
        with_bound = [*labels, f'le="{bound}"']
        yield f"{family.name}_bucket{_braced(with_bound)} {count}"
    yield f"{family.name}_sum{_braced(labels)} {sample.total!r}"
    yield f"{family.name}_count{_braced(labels)} {sum(sample.counts)}"


def _labels(family: Family, label: Label) -> list[str]:
    pairs = zip(family.labels, label, strict=True)
    return [f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs]


def _braced(labels: list[str]) -> str:
    return f"{{{','.join(labels)}}}" if labels else ""
