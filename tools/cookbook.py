"""
Refreshes the output of the commands in docs/cookbook.md.

    python -m tools.cookbook            prints the updated page
    python -m tools.cookbook --write    writes it

The commands run in a folder with `captures`, and the scripts that docs/hooks.md shows.

A block begins with its command, optionally followed by `# status N` with the expected exit status,
else 0. If the block ends with `...`, the page keeps its number of output lines, else all output.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "cookbook.md"

_BLOCK = re.compile(r"```console\n\$ (.*)\n((?:.*\n)*?)```")
_SCRIPT = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)
_STATUS = re.compile(r"# status (\d+)$")


@dataclass(frozen=True, slots=True)
class Example:
    """
    A command of the page.

    Attributes:
        command: The line without its prompt.
        shown: Output on the page, without `...`.
        is_cut: Whether output is omitted.
    """

    command: str
    shown: tuple[str, ...]
    is_cut: bool

    @property
    def words(self) -> list[str]:
        """Words of the command, beginning with `kafkashark`."""
        return shlex.split(self.command, comments=True)

    @property
    def status(self) -> int:
        """The expected exit status."""
        found = _STATUS.search(self.command)
        return int(found[1]) if found else 0

    def excerpt(self, lines: Sequence[str]) -> list[str]:
        """Return the output lines for the page."""
        lines = [line.rstrip() for line in lines]
        if not self.is_cut:
            return lines
        return [*lines[: max(1, len(self.shown))], "..."]

    @property
    def block(self) -> list[str]:
        """Output as shown on the page."""
        return [*self.shown, *(["..."] if self.is_cut else [])]


def examples(text: str) -> Iterator[Example]:
    """Yield the examples of a page."""
    for found in _BLOCK.finditer(text):
        yield _example(found)


def refreshed(text: str, run: Callable[[Example], list[str]]) -> str:
    """Return the page with new output; `run` runs a command and returns its output lines."""

    def block(found: re.Match[str]) -> str:
        lines = [f"$ {found[1]}", *_example(found).excerpt(run(_example(found)))]
        return "\n".join(["```console", *lines, "```"])

    return _BLOCK.sub(block, text)


def _example(found: re.Match[str]) -> Example:
    lines = found[2].splitlines()
    is_cut = lines[-1:] == ["..."]
    return Example(found[1], tuple(lines[:-1] if is_cut else lines), is_cut)


def set_up(folder: Path) -> None:
    """Make what the commands name in a folder."""
    (folder / "captures").symlink_to(ROOT / "captures")
    hooks = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
    for name, code in _SCRIPT.findall(hooks):
        (folder / name).write_text(code, encoding="utf-8")


def _run(example: Example, folder: Path) -> list[str]:
    words = [sys.executable, "-m", *example.words]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != example.status:
        raise SystemExit(f"{example.command}: status {done.returncode}\n{done.stderr}")
    return done.stdout.splitlines()


def main(arguments: list[str]) -> None:
    """Run the tool."""
    if arguments not in ([], ["--write"]):
        raise SystemExit("python -m tools.cookbook [--write]")
    with TemporaryDirectory() as folder:
        set_up(Path(folder))
        text = refreshed(PAGE.read_text(encoding="utf-8"), partial(_run, folder=Path(folder)))
    if arguments:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
