"""The part of a page that a program writes, between two marks."""

from __future__ import annotations


def with_generated(page: str, marks: tuple[str, str], part: str) -> str:
    """
    Return a page with the part between its marks replaced.

    Raises:
        SystemExit: The page lacks one of the marks.
    """
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise SystemExit(f"the page has no {marks[0].strip()} ... {marks[1].strip()}")
    return f"{before}{begin}{part}{end}{after}"
