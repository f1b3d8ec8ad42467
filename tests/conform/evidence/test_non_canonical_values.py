"""Values that Kafka's encoders never write are found at every depth."""

from __future__ import annotations

import pytest
from construct import Container

from conform.evidence.non_canonical_values import is_non_canonical_text, non_canonical_check
from dissector.protocol.schema import Array, Bool, Bytes, Int8, String, Struct, message

THING = message(None, "0-1", flexible="1+")[
    String("name"),
    String("nick", null="0+"),
    Bytes("data"),
    Array("names", of=String),
    Array("rows", null="0+")[Bool("flag"), Int8("number")],
    Struct("inner", null="0+")[String("text")],
    String("tagged", "1+", tag=0),
]


def thing(**values: object) -> Container:
    usual = {
        "name": "n",
        "nick": None,
        "data": b"",
        "names": ["é"],
        "rows": [Container(flag=True, number=1)],
        "inner": None,
        "tagged": "",
    }
    return Container(usual | values)


@pytest.mark.parametrize(
    "usual", [{}, {"nick": "x"}, {"rows": None}, {"inner": Container(text="x")}, {"rows": []}]
)
def test_usual_values(usual: dict[str, object]) -> None:
    assert not non_canonical_check(THING, 1)(thing(**usual))


@pytest.mark.parametrize(
    "odd",
    [
        {"name": None},
        {"name": "\udcff"},
        {"nick": "\udcff"},
        {"data": None},
        {"names": None},
        {"names": ["x", "\udcff"]},
        {"names": [None]},
        {"rows": [Container(flag=True, number=1), Container(flag=2, number=1)]},
        {"inner": Container(text=None)},
        {"tagged": None},
    ],
)
def test_unusual_values(odd: dict[str, object]) -> None:
    assert non_canonical_check(THING, 1)(thing(**odd))


def test_tagged_fields_need_flexible_versions() -> None:
    assert not non_canonical_check(THING, 0)(thing(tagged=None))


@pytest.mark.parametrize(("text", "odd"), [("", 0), ("grüße", 0), ("\udcff", 1), ("a\ud800", 1)])
def test_text(text: str, odd: int) -> None:
    assert is_non_canonical_text(text) is bool(odd)
