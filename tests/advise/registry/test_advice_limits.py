"""Thresholds of settings files."""

from __future__ import annotations

from pathlib import Path

import pytest

import advise.catalogue  # noqa: F401  (fills the registry)
from advise.registry.advice_limits import limits_of
from dissector.errors import UsageError


def test_kafkashark_toml_hides_pyproject_toml(tmp_path: Path) -> None:
    table = "[tool.kafkashark.advise.acks-0]\ncount = {}\n"
    (tmp_path / "pyproject.toml").write_text(table.format(5))
    assert limits_of((), tmp_path)["acks-0"]["count"] == 5
    (tmp_path / "kafkashark.toml").write_text(table.format(6))
    assert limits_of((), tmp_path)["acks-0"]["count"] == 6
    assert limits_of(["acks-0.count=7"], tmp_path)["acks-0"]["count"] == 7
    assert limits_of()["acks-0"]["count"] == 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool", "kafkashark.toml: can not be read"),
        ("[tool.kafkashark.advise]\nacks-0 = 1", "tool.kafkashark.advise.acks-0 is not a table"),
        ("[tool.kafkashark.advise.acks-0]\ncount = true", "takes a number from 0 on"),
    ],
)
def test_settings_that_are_wrong_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "kafkashark.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        limits_of((), tmp_path)
