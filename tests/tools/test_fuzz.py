from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from tools import fuzz


def test_examples_are_reproducible(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("hypothesis_profile", None) == "fuzz":
        pytest.skip("these are to be new ones")
    assert settings.default is not None
    assert settings.default.derandomize


def test_the_profile_of_make_fuzz_keeps_failing_examples() -> None:
    profile = settings.get_profile("fuzz")
    assert not profile.derandomize
    assert profile.database is not None
    assert profile.print_blob


def test_files_with_property_tests_are_found(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    drawn, plain = tmp_path / "deep/test_a.py", tmp_path / "test_b.py"
    drawn.write_text("@given(st.integers())\ndef test_a(n): pass\n")
    plain.write_text("def test_b(): pass\n")
    assert fuzz.property_tests([str(tmp_path)]) == [drawn]
    assert fuzz.property_tests([str(drawn), str(plain)]) == [drawn]


def test_without_time_left_no_test_runs(tmp_path: Path) -> None:
    assert fuzz.searched(tmp_path / "nowhere.py", end=0) == (tmp_path / "nowhere.py", "")
