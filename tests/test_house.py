"""Rules of the code base."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import dissector
from tools import api_table
from tools.house_figures import circle_of_imports, imports_of

ROOT = Path(__file__).parents[1]
PACKAGES = (
    *("kafkashark", "dissector", "cluster", "conform", "replay", "pipeline", "timeline", "report"),
    *("browse", "serve", "record", "advise", "findings", "exporter", "assistant", "wireshark"),
)
ALL = (*PACKAGES, "tests", "tools", "benchmarks")

MODULES = sorted(
    path.relative_to(ROOT)
    for room in PACKAGES
    for path in (ROOT / room).rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py")
)

TESTED_ABOVE = (
    "conform/probe/probes",  # tests/conform/probe: correct and faulty brokers
    "dissector/protocol/apis",  # tests/dissector/protocol/test_apis.py
    "dissector/protocol/embedded/log_records",  # tests/dissector/protocol/embedded
)
"""Rooms of declarations and probes, whose tests go over all of them."""

ROOMS = sorted({module.parent.as_posix() for module in MODULES})

SAME_NAMES = {
    "__main__",  # what `python -m` runs
    "cli",  # the commands of a package
    "schema",  # the declared messages, and the command that prints them
    "conftest",  # pytest's name of fixtures
    "public",  # the interface of a package
    "test_cli",  # tests of these
    "test_public",
}
"""File names that mean the same in each room."""

MOST_FILES = 20
MAX_LINES = 400

MAX_KERNEL_PARAMETERS = 8

MOST_CONSTANTS = 12
"""Imported constants of a file: with more of them its subject lies elsewhere."""

IMPORTED = re.compile(r"^ *from [\w.]+ import (\([^)]*\)|.*)$", re.MULTILINE)
CONSTANT = re.compile(r"(?<!as )\b[A-Z][A-Z0-9_]+\b")

PLACES = re.compile(r"(?<![\w.\-])/(home|Users|root|work|mnt)/\w|\b[A-Z]:\\\w")
"""Paths that only one machine has."""


def test_every_room_has_its_tests() -> None:
    bare = [
        room
        for room in ROOMS
        if not room.startswith(TESTED_ABOVE) and not list((ROOT / "tests" / room).glob("test_*.py"))
    ]
    assert not bare, f"without tests of their own: {', '.join(bare)}"


def test_functions_of_kernels_have_few_parameters_of_known_types() -> None:
    """Arrays that belong together are the fields of a NamedTuple."""
    found = [
        (path.as_posix(), function)
        for path in MODULES
        for function in _kernel_functions((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert found
    for path, function in found:
        assert len(function.args.args) <= MAX_KERNEL_PARAMETERS, f"{path}: {function.name}"
        types = [each.annotation for each in function.args.args] + [function.returns]
        assert all(types), f"{path}: {function.name}"
        words = {word for each in types if each for word in re.findall(r"\w+", ast.unparse(each))}
        assert not words & {"Any", "object"}, f"{path}: {function.name}"


def _kernel_functions(text: str) -> list[ast.FunctionDef]:
    """Return the functions of a module that are compiled."""
    if not re.search(r"^@(Kernel|device_function)\b", text, re.MULTILINE):
        return []
    return [
        each
        for each in ast.parse(text).body
        if isinstance(each, ast.FunctionDef)
        and {ast.unparse(decorator) for decorator in each.decorator_list}
        & {"Kernel", "device_function"}
    ]


def test_rooms_are_small() -> None:
    sources = [path for room in ALL for path in (ROOT / room).rglob("*.py")]
    files = Counter(str(path.parent) for path in sources if path.name != "__init__.py")
    assert {room: count for room, count in files.items() if count > MOST_FILES} == {}


def test_rooms_have_docstrings() -> None:
    rooms = [ROOT / room / "__init__.py" for room in ROOMS]
    assert [str(room) for room in rooms if not ast.get_docstring(ast.parse(room.read_text()))] == []


def test_a_file_name_means_one_thing() -> None:
    sources = [path for room in ALL for path in (ROOT / room).rglob("*.py")]
    times = Counter(path.stem for path in sources if path.name != "__init__.py")
    assert {name for name, count in times.items() if count > 1} == SAME_NAMES


def test_public_names_are_documented() -> None:
    assert dissector.__all__ == sorted(dissector.__all__)
    with pytest.raises(AttributeError):
        dissector.MAX_FRAME_BYTES  # noqa: B018  (that public module uses it does not publish it)
    for name in dissector.__all__:
        assert getattr(dissector, name).__doc__, f"{name} has no docstring"


def test_imports_go_one_way() -> None:
    """Also between files: imports for types, inside functions, and by name."""
    assert circle_of_imports(MODULES) == []


@pytest.mark.parametrize(
    "line",
    [
        'html = import_module("dissector.view.text.notebook").message_html(self)',
        'html = importlib.import_module("dissector.view.text.notebook")',
        '__import__("dissector.view.text.notebook")',
        'PLACES = {"notebook": "dissector.view.text.notebook"}',
        "from dissector.view.text import notebook",
        "def html():\n    import dissector.view.text.notebook",
    ],
)
def test_imports_by_name_are_found(tmp_path: Path, line: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"{line}\n")
    name = "dissector.view.text.notebook"
    assert imports_of(path, {name, "dissector.view"}) >= {name}


def test_files_are_short() -> None:
    lines = {
        path.relative_to(ROOT).as_posix(): path.read_text().count("\n")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assert {name for name, count in lines.items() if count > MAX_LINES} == set()


def test_files_import_few_constants() -> None:
    counts = Counter(
        module.as_posix()
        for module in MODULES
        for names in IMPORTED.findall((ROOT / module).read_text(encoding="utf-8"))
        for _ in CONSTANT.findall(names)
    )
    assert {name: count for name, count in counts.items() if count > MOST_CONSTANTS} == {}


def test_the_table_of_apis_is_current() -> None:
    text = api_table.PAGE.read_text()
    assert text == api_table.written_into(text), "regenerate it: python -m tools.api_table --write"


def test_the_table_of_apis() -> None:
    lines = api_table.table().splitlines()
    assert len(lines) == 2 + 95
    assert lines[2] == "| 0 | Produce | 0-13 | 9 |"
    assert lines[2 + 17] == "| 17 | SaslHandshake | 0-1 | never |"
    with pytest.raises(SystemExit):
        api_table.written_into("no marks")


def test_no_file_has_a_path_of_one_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    found = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (data := path.read_bytes()):
            text = data.decode(errors="replace")
            found += [f"{name}: {match[0]}" for match in PLACES.finditer(text)]
    assert not found


def test_no_test_waits_without_an_end() -> None:
    """
    `child` kills a process after a failed assertion, else its end would be awaited.

    `wait_until` leaves the processor to what it waits for, and gives up.
    """
    process = rf"with {'subprocess'}\.Popen\("
    busy = r"while (?!.*\b(recv|read|_step)\().*:\n +(pass|continue)\b"
    waiting = re.compile(f"{process}|{busy}")
    texts = {each: each.read_text() for each in (ROOT / "tests").rglob("*.py")}
    assert not [str(each) for each, text in texts.items() if waiting.search(text)]
