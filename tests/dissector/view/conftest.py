"""Fixtures for tests of views."""

from __future__ import annotations

from typing import Any

import pytest

from dissector.view.json import bulk_bodies


@pytest.fixture
def no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a body is left to Python."""

    def fail(*args: Any) -> bytes:
        raise AssertionError("left to Python")

    monkeypatch.setattr(bulk_bodies.BodyWriter, "decode_body", fail)
