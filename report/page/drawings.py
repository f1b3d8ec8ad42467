"""What only a page has: places of plots, and lanes of events, as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dissector.view.document.content import Drawing, Markup
from dissector.view.document.html_form import html_text
from report.page.lanes import Lane, Mark

_PLOTS = """\
<noscript><p class="note">The plots need scripts; all tables work without.</p></noscript>
<div class="controls" hidden>
<label for="dimension">Show</label>
<select id="dimension">
<option value="all">all exchanges</option>
<option value="api">by API</option>
<option value="client">by client</option>
<option value="topic">by topic</option>
<option value="broker">by broker</option>
</select>
<select id="value" aria-label="Value"></select>
<span class="buttons" role="group" aria-label="Zoom">
<button type="button" id="zoom-in">Zoom in</button>
<button type="button" id="zoom-out">Zoom out</button>
<button type="button" id="earlier">Earlier</button>
<button type="button" id="later">Later</button>
<button type="button" id="reset">Whole capture</button>
</span>
<output id="range"></output>
</div>
<p class="note keys" hidden>Drag over a plot to zoom, also the tables of exchanges and events; \
double click for the whole capture. In a focused plot: arrow keys move the cursor, Shift with \
them the range, + and - zoom, 0 shows all.</p>
<div id="plots"></div>"""

_LANE_WIDTH = 1000
_LEAST_WIDTH = 3


def plots_drawing() -> Drawing:
    """Return the place of the plots, which a script draws, and their controls."""
    return Drawing([Markup(_PLOTS)])


def lanes_drawing(
    title: str, lanes: Sequence[Lane], more: int, span_s: float, until_s: float
) -> Drawing:
    """
    Return lanes of events on the axis of time.

    Args:
        title: Heading.
        lanes: The lanes.
        more: Number of subjects without one.
        span_s: Duration of the capture.
        until_s: End of the part that events cover.
    """
    return Drawing(_lines(title, lanes, more, span_s, until_s))


def _lines(
    title: str, lanes: Sequence[Lane], more: int, span_s: float, until_s: float
) -> Iterator[Markup]:
    yield Markup(f"<h3>{html_text(title)}</h3>")
    yield Markup(f'<div class="lanes" data-until="{until_s}">')
    for lane in lanes:
        subject = html_text(lane.subject)
        yield Markup(f'<div class="lane"><span title="{subject}">{subject}</span>')
        yield Markup(
            f'<svg viewBox="0 0 {_LANE_WIDTH} 16" preserveAspectRatio="none" role="img" '
            f'aria-label="{subject}: {len(lane.marks)} events">'
        )
        for mark in lane.marks:
            yield _mark(mark, span_s)
        yield Markup("</svg></div>")
    yield Markup("</div>")
    if more:
        yield Markup(f'<p class="note">{more:,} more have no lane.</p>')


def _mark(mark: Mark, span_s: float) -> Markup:
    begin = round(_LANE_WIDTH * mark.begin_s / span_s, 2)
    width = round(max(_LANE_WIDTH * (mark.end_s - mark.begin_s) / span_s, _LEAST_WIDTH), 2)
    return Markup(
        f'<rect class="{mark.css_class}" x="{begin}" y="1" width="{width}" height="14" '
        f'data-begin="{mark.begin_s}" data-end="{mark.end_s}" data-label="{html_text(mark.label)}">'
        f"<title>{html_text(mark.title)}</title></rect>"
    )
