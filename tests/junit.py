"""Checks of JUnit XML against its common readers."""

from __future__ import annotations

from xml.etree import ElementTree

ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "time", "tests", "failures", "errors", "skipped", "timestamp"},
    "properties": set[str](),
    "property": {"name", "value"},
    "testcase": {"name", "time", "classname"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
    "system-out": set[str](),
    "system-err": set[str](),
}
"""
The elements and attributes that our reports may use.

Source: junit-10.xsd of Jenkins' xUnit plugin, which rejects a file with any other.
"""

REQUIRED = {
    "testsuite": {"name", "tests", "failures", "errors"},
    "property": {"name", "value"},
    "testcase": {"name"},
}


def assert_valid(xml: str) -> None:
    """Check elements and attributes, and the totals against the cases."""
    root = ElementTree.fromstring(xml.encode())
    for each in root.iter():
        assert each.tag in ATTRIBUTES
        assert set(each.keys()) <= ATTRIBUTES[each.tag], each.tag
        assert REQUIRED.get(each.tag, set()) <= set(each.keys()), each.tag
    suite = root.find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases))
    for total in ("tests", "failures", "errors", "time"):
        assert root.get(total) == suite.get(total), total
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    for total, kind in kinds.items():
        assert suite.get(total) == str(sum(case.find(kind) is not None for case in cases)), total
    names = [case.get("name") for case in cases]
    assert len(set(names)) == len(names), "readers merge cases of one name"
