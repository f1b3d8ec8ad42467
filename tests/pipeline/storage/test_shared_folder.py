"""Tasks refuse a folder of outputs that is not the driver's."""

from __future__ import annotations

from pathlib import Path
from socket import gethostname

import pytest

from dissector.errors import PipelineError
from pipeline.storage.installed_release import release, require_release
from pipeline.storage.shared_folder import leave_mark, require_mark


def test_the_folder_of_the_driver_is_accepted(tmp_path: Path) -> None:
    folder = str(tmp_path / "out" / "_work")
    marks = {leave_mark(folder), leave_mark(folder)}
    assert len(marks) == 2
    for mark in marks:
        require_mark(mark, "out")


def test_another_folder_of_that_name_is_refused(tmp_path: Path) -> None:
    """Also one with marks of other jobs."""
    leave_mark(str(tmp_path))
    with pytest.raises(PipelineError) as error:
        require_mark(str(tmp_path / "_driver-1"), "/data/out")
    assert str(error.value).startswith("/data/out on ")
    assert str(error.value).endswith("under this name, as a mounted folder or a URI")


def test_a_worker_of_another_release_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_release(release())
    require_release("")
    monkeypatch.setattr("pipeline.storage.shared_folder.release", lambda: "9.9-a")
    mark = leave_mark(str(tmp_path))
    said = f"^{gethostname()} has kafkashark {release()}, and the driver 9.9-a: install the same"
    with pytest.raises(PipelineError, match=said):
        require_mark(mark, "out")
