"""Plots of latencies: captured and replayed, by percentile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dissector.view.document.content import Drawing, Markup
from dissector.view.document.html_form import html_text
from replay.report.counters import ApiCounters

_WIDTH, _HEIGHT, _LEFT, _BELOW = 300, 150, 58, 22
_MARKS = {50: "middle", 90: "end", 99: "middle"}
_COLOURS = ("var(--soft)", "var(--c0)")


def latency_plots(apis: Mapping[str, ApiCounters]) -> Drawing | None:
    """Return a plot for each API with replayed responses; None without one."""
    shown = [(name, known) for name, known in sorted(apis.items()) if len(known.replayed)]
    return Drawing(_lines(shown)) if shown else None


def _lines(apis: Sequence[tuple[str, ApiCounters]]) -> Iterator[Markup]:
    yield Markup("<h3>Latency: captured (grey) and replayed (blue)</h3>")
    yield Markup('<div class="plots">')
    for name, known in apis:
        caption = f"<figcaption>{html_text(name)}</figcaption>"
        yield Markup(f"<figure>{caption}{_plot(known)}</figure>")
    yield Markup("</div>")


def _plot(counters: ApiCounters) -> str:
    """Return the latency in ms by percentile as two lines: captured and replayed."""
    lines = [
        [times.ms(percent) or 0.0 for percent in range(1, 101)] if len(times) else []
        for times in (counters.captured, counters.replayed)
    ]
    top = max(max(line, default=0.0) for line in lines) or 1.0
    width, height = _WIDTH - _LEFT - 16, _HEIGHT - _BELOW - 8
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">',
        f'<path d="M{_LEFT} 8V{8 + height}H{_LEFT + width}" fill="none" stroke="currentColor" '
        'opacity=".4"/>',
        f'<text x="{_LEFT - 4}" y="14" text-anchor="end">{duration_text(top)}</text>',
        f'<text x="{_LEFT - 4}" y="{8 + height}" text-anchor="end">0</text>',
    ]
    for mark, anchor in _MARKS.items():
        at = _LEFT + width * mark / 100
        parts.append(
            f'<text x="{at:.0f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">p{mark}</text>'
            f'<path d="M{at:.0f} 8v{height}" stroke="currentColor" opacity=".12"/>'
        )
    for line, colour in zip(lines, _COLOURS, strict=True):
        points = " ".join(
            f"{_LEFT + width * at / 100:.1f},{8 + height * (1 - value / top):.1f}"
            for at, value in enumerate(line, 1)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        )
    return "".join([*parts, "</svg>"])


def duration_text(ms: float) -> str:
    """Return a duration, short enough for an axis label."""
    seconds = ms / 1000
    if ms < 999.5:
        return f"{ms:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:,.0f} s"
