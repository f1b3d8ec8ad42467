from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker import artifacts


def test_missing_java_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(artifacts.MissingError, match="java is not installed"):
        artifacts.jars()


def test_the_error_of_maven_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for tool in ("java", "mvn"):
        (tmp_path / tool).write_text("#!/bin/sh\necho no such artifact\nexit 1\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("KAFKASHARK_CACHE", str(tmp_path / "cache"))
    with pytest.raises(artifacts.MissingError, match="no such artifact"):
        artifacts.jars("4.0.0")
    assert not list((tmp_path / "cache" / "broker").iterdir())
