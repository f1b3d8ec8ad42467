"""The page in a real browser: no error, no request, zoom, filters, keyboard, print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dissector.public import open_capture
from tests.browser import Page, browser, browser_path
from tests.corpus import FOLDER
from tests.report.pages import HOSTILE, hostile_capture, run

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(browser_path() is None, reason="Chromium is not installed"),
]

NOTE = "Of the zoomed time; percentiles are known of the whole capture only."
BEGIN = "JSON.parse(document.getElementById('data').textContent).begin_s"
RANGE = "[reportZoom.min, reportZoom.max]"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = browser_path()
    assert program is not None
    with browser(program, tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("page") / "demo.html"
    assert run(FOLDER / "demo.pcap", "-o", output) == 0
    return output


@pytest.fixture(autouse=True)
def no_messages_and_requests(page: Page) -> Iterator[None]:
    """Check that a page logs nothing and loads nothing else."""
    page.complaints.clear()
    page.requested.clear()
    yield
    assert page.complaints == []
    assert [url for url in page.requested if not url.endswith(".html")] == []


def choose(page: Page, element: str, value: str) -> None:
    page.value(
        f"(() => {{ const found = document.getElementById('{element}'); found.value = '{value}';"
        " found.dispatchEvent(new Event('change')); found.dispatchEvent(new Event('input')); })()"
    )


def test_plots_are_drawn(page: Page, demo: Path) -> None:
    page.open(demo)
    assert page.value("document.querySelectorAll('#plots canvas').length") == 5
    drawn = (
        "[...document.querySelectorAll('#plots canvas')].map(each => each.getContext('2d')"
        ".getImageData(0, 0, each.width, each.height).data.some(value => value > 0))"
    )
    assert page.value(drawn) == [True] * 5
    assert "highest" in page.value("document.querySelector('figcaption').textContent")


def test_series_can_be_compared_and_chosen(page: Page, demo: Path) -> None:
    page.open(demo)
    legend = "document.querySelector('.u-legend').textContent"
    choose(page, "dimension", "topic")
    assert "demo.orders" in page.value(legend)
    choose(page, "value", "0")
    assert "exchanges" in page.value(legend)


COUNTS = (
    "Object.fromEntries(['apis', 'clients', 'brokers', 'errors'].map(id => [id, "
    "[...document.querySelectorAll(`#${id} tbody tr`)].map(row => Number(row.querySelector("
    "'[data-number]').dataset.number)).reduce((one, other) => one + other, 0)]))"
)


def test_totals_and_errors_follow_the_zoom(page: Page, demo: Path) -> None:
    page.open(demo)
    before = page.value(COUNTS)
    text = "document.getElementById('apis').textContent"
    whole = page.value(text)
    page.value("reportZoom.zoom(reportZoom.min + 1.5, reportZoom.min + 3.5)")
    begin_s, end_s = page.value(f"{RANGE}.map(each => each - {BEGIN})")
    width_s = page.value("JSON.parse(document.getElementById('data').textContent).width_s")
    rows = [each.row() for each in open_capture(FOLDER / "demo.pcap")]
    first_ns = min(row["request_time_ns"] for row in rows)

    def counted(room_s: float) -> tuple[int, int]:
        times = [((row["request_time_ns"] - first_ns) / 1e9, row) for row in rows]
        inside = [row for at, row in times if begin_s - room_s <= at < end_s + room_s]
        return len(inside), sum(len(row["errors"]) for row in inside)

    after = page.value(COUNTS)
    # Bins are whole: up to one more at each end.
    (least, least_errors), (most, most_errors) = counted(0), counted(width_s)
    assert before["apis"] == before["clients"] == before["brokers"] == len(rows)
    assert least <= after["apis"] == after["clients"] == after["brokers"] <= most < len(rows)
    assert least_errors <= after["errors"] <= most_errors < before["errors"]
    assert "percentiles are known of the whole capture only" in page.value(text)
    page.value("reportZoom.whole()")
    assert page.value(COUNTS) == before
    assert page.value(text).replace(NOTE, "") == whole.replace(NOTE, "")


def test_a_drag_zooms_all_plots(page: Page, demo: Path) -> None:
    page.open(demo)
    whole = page.value(RANGE)
    mark = "document.querySelector('.lane rect').getAttribute('x')"
    before = page.value(mark)
    page.value("document.querySelector('.u-over').scrollIntoView({block: 'center'})")
    left, top, width, height = page.value(
        "(() => { const box = document.querySelector('.u-over').getBoundingClientRect();"
        " return [box.left, box.top, box.width, box.height]; })()"
    )
    middle = top + height / 2
    page.drag((left + width * 0.6, middle), (left + width * 0.9, middle))
    zoomed = page.value(RANGE)
    assert whole[0] < zoomed[0] < zoomed[1] < whole[1]
    assert " of 25" in page.value("document.querySelector('#slowest .count').textContent")
    assert page.value(mark) != before
    page.value("document.getElementById('reset').click()")
    assert page.value(RANGE) == whole


def test_keys_zoom_and_move(page: Page, demo: Path) -> None:
    page.open(demo)
    whole = page.value(RANGE)
    page.value("document.querySelector('figure').focus()")
    page.press("+")
    half = page.value(RANGE)
    assert half[1] - half[0] == pytest.approx((whole[1] - whole[0]) / 2)
    page.press("ArrowRight", shift=True)
    assert page.value(RANGE)[0] > half[0]
    page.press("ArrowRight")
    assert page.value("document.querySelector('.u-legend').textContent").startswith("time")
    page.press("0")
    assert page.value(RANGE) == whole


def test_the_first_key_skips_to_the_report(page: Page, demo: Path) -> None:
    page.open(demo)
    page.press("Tab")
    assert page.value("document.activeElement.className") == "skip"
    page.press("Enter")
    assert page.value("location.hash") == "#main"


def test_tables_are_filtered_and_sorted(page: Page, demo: Path) -> None:
    page.open(demo)
    choose(page, "filter", "fetch demo.orders")
    rows = "[...document.querySelectorAll('details tbody tr')].filter(row => !row.hidden)"
    texts = page.value(f"{rows}.map(row => row.textContent.toLowerCase())")
    assert texts
    assert all("fetch" in text and "demo.orders" in text for text in texts)
    choose(page, "filter", "")
    cells = "[...document.querySelectorAll('#apis tbody td:nth-child(2)')]"
    for is_down in (True, False):
        page.value("document.querySelectorAll('#apis th button')[1].click()")
        counts = page.value(f"{cells}.map(cell => Number(cell.textContent))")
        assert counts == sorted(counts, reverse=is_down)


def test_dark_and_print(page: Page, demo: Path) -> None:
    page.open(demo)
    color = "getComputedStyle(document.body).backgroundColor"
    light = page.value(color)
    page.open(demo, dark=True)
    assert page.value(color) != light
    assert page.printed().startswith(b"%PDF")
    assert page.value("document.querySelectorAll('#clients[open]').length") == 0


def test_printed_tables_are_whole_and_have_headings_on_each_page(page: Page, demo: Path) -> None:
    page.open(demo)
    page.call("Emulation.setEmulatedMedia", media="print")
    page.value("void dispatchEvent(new Event('beforeprint'))")
    assert page.value("document.querySelectorAll('details:not([open])').length") == 0
    assert page.value("document.querySelectorAll('thead').length") > 10
    styles = "[...document.querySelectorAll('%s')].map(each => getComputedStyle(each).%s)"
    assert set(page.value(styles % ("thead", "display"))) == {"table-header-group"}
    assert set(page.value(styles % ("tr", "breakInside"))) == {"avoid"}
    assert set(page.value(styles % (".wide", "maxHeight"))) == {"none"}
    assert set(page.value(styles % (".wide", "overflow"))) == {"visible"}
    assert page.value("document.querySelectorAll('thead button').length") == 0
    page.value("void dispatchEvent(new Event('afterprint'))")
    assert page.value("document.querySelectorAll('thead th:not(:has(button))').length") == 0
    page.call("Emulation.setEmulatedMedia", media="")


def test_captured_names_run_no_script(page: Page, tmp_path: Path) -> None:
    output = tmp_path / "hostile.html"
    assert run(hostile_capture(tmp_path, [HOSTILE, "__proto__"]), "-o", output) == 0
    page.open(output)
    for dimension in ("api", "client", "topic", "broker"):
        choose(page, "dimension", dimension)
    assert page.value("document.images.length") == 0


def test_a_page_without_exchanges(page: Page, tmp_path: Path) -> None:
    empty, output = tmp_path / "empty.pcap", tmp_path / "empty.html"
    empty.write_bytes((FOLDER / "demo.pcap").read_bytes()[:24])
    assert run(empty, "-o", output) == 0
    page.open(output)
    assert page.value("document.querySelector('.filter').hidden") is True


def test_a_finding_zooms_and_gives_its_filter(page: Page, demo: Path) -> None:
    page.open(demo)
    whole = page.value(RANGE)
    page.value("document.querySelector('details.finding button.show').click()")
    found = page.value(RANGE)
    assert whole[0] < found[0] < found[1] < whole[1]
    page.value("document.querySelector('details.finding button[data-filter]').click()")
    button = "document.querySelector('details.finding button[data-filter]')"
    assert page.value(f"{button}.textContent") == "copied"
    assert "UNKNOWN_TOPIC_OR_PARTITION" in page.value(f"{button}.dataset.filter")


def test_dots_and_lanes_follow_the_zoom(page: Page, demo: Path) -> None:
    page.open(demo)
    count = "document.querySelectorAll('#latency-plot circle, #latency-plot path').length"
    every = page.value(count)
    data = "JSON.parse(document.getElementById('data').textContent)"
    assert every == page.value(f"{data}.dots.at.length") > 200
    assert page.value("document.querySelectorAll('.mark-label').length") > 2
    box = page.value(
        "(() => { const box = document.getElementById('latency-plot').getBoundingClientRect();"
        " return [box.left, box.top, box.width]; })()"
    )
    left, top, width = box
    page.drag((left + width * 0.3, top + 50), (left + width * 0.6, top + 60))
    assert 0 < page.value(count) < every
    assert page.value("reportZoom.isWhole") is False
    assert "of" in page.value("document.getElementById('filtered').textContent")
