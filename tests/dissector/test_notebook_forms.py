"""Forms of values in notebooks: registered by the rooms that write them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dissector.notebook_forms import notebook_form, register_form

ROOT = Path(__file__).parents[2]
CAPTURE = "captures/kafka4-librdkafka-acks.pcap"


class Shape:
    """A value of a room below."""


class Circle(Shape):
    """A kind of it."""


def test_a_class_and_its_subclasses_have_the_registered_form() -> None:
    register_form(Shape, lambda shape: f"<b>{type(shape).__name__}</b>")
    assert notebook_form(Shape()) == "<b>Shape</b>"
    assert notebook_form(Circle()) == "<b>Circle</b>"


def test_without_a_form_the_repr_is_shown() -> None:
    assert notebook_form("<script>") == "<pre>&#x27;&lt;script&gt;&#x27;</pre>"


@pytest.mark.thinned(9)
@pytest.mark.parametrize(
    ("names", "value"),
    [
        ("open_capture", f"next(iter(open_capture({CAPTURE!r})))"),
        ("open_capture", f"next(iter(open_capture({CAPTURE!r}))).request"),
        ("dissect", f"next(iter(dissect({CAPTURE!r})))"),
        ("decode_request", r"decode_request(b'\0\x12\0\0\0\0\0\1\0\0')"),
        ("conform", f"conform({CAPTURE!r})"),
        ("Plan", f"Plan.of({CAPTURE!r})"),
        ("codec", "codec('Produce', 9, 'request')"),
        ("advise", f"advise({CAPTURE!r})"),
        ("findings", f"findings({CAPTURE!r})"),
    ],
)
def test_values_have_forms_after_the_usual_imports(names: str, value: str) -> None:
    program = f"from kafkashark import {names}; print(({value})._repr_html_())"
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert shown.startswith("<d")
