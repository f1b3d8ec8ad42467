"""The tutorial runs, in its own kernel, and is stored without outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"

# In a separate process: libraries of notebooks give deprecation warnings.
RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(notebook, timeout=100, resources={"metadata": {"path": sys.argv[2]}}).execute()
nbformat.write(notebook, sys.stdout)
"""


def cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_tutorial_is_stored_without_outputs() -> None:
    for cell in cells(json.loads(TUTORIAL.read_text(encoding="utf-8"))):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@pytest.mark.long
def test_the_tutorial_runs() -> None:
    pytest.importorskip("nbclient")
    words = [sys.executable, "-c", RUN, str(TUTORIAL), str(TUTORIAL.parent)]
    run = subprocess.run(words, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    outputs = [cell["outputs"] for cell in cells(json.loads(run.stdout))]
    kinds = {kind for output in outputs for each in output for kind in each.get("data", {})}
    text = json.dumps(outputs)
    assert "text/html" in kinds
    assert "53 Produce requests" in text
    assert "MEMBER_ID_REQUIRED" in text
    assert "answers as captured" in text
    assert not [each for output in outputs for each in output if each.get("name") == "stderr"]
