"""
Draws the first page of a report for README and docs; needs Chromium.

    python -m tools.report_picture captures/demo.pcap docs/report.png
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from dissector.cli import main as run
from report.cli import report
from tests.browser import browser, browser_path

WIDTH, HEIGHT = 1260, 1180


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("capture")
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    program = browser_path()
    if program is None:
        parser.error("no Chromium is installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page_file = Path(folder) / "report.html"
        status = run(["report", given.capture, "-o", str(page_file)], [("report", report)])
        if status:
            raise SystemExit(status)
        with browser(program, Path(folder) / "profile") as page:
            page.open(page_file)
            page.size(WIDTH, HEIGHT)
            page.screenshot(given.picture)


if __name__ == "__main__":
    main()
