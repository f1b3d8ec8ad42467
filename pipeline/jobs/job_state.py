"""
Whether the tables in a folder are complete, and whether an unfinished job can continue.

    OUT/_job.json    what the job reads, and how; written before its first task
    OUT/_work        outputs of tasks, and their results (`task_results`)
    OUT/_SUCCESS     number of rows of each table; written last

Tasks are the same in every run of a job, so a later run takes the results of those that are
complete, and writes the files of the others under the same names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from typing import Any

from dissector.errors import CaptureError, ReadError, UsageError
from pipeline.jobs.request import Request
from pipeline.split.collection import Collection
from pipeline.storage.atomic_files import (
    atomic_write,
    has_files,
    join_path,
    remove_file,
    remove_folder,
)
from pipeline.storage.filesystems import expand_paths, open_file
from pipeline.storage.installed_release import release
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS

WORK = "_work"
"""The folder beside the tables for outputs of tasks; Spark ignores it."""

STATE_FILE = "_job.json"

SUCCESS_FILE = "_SUCCESS"
"""The name that Hadoop and Spark use."""

_NOT_COMPARED = ("schemas", "topic_names")
"""Options without a text that is the same in every process."""


@dataclass(frozen=True, slots=True)
class Made:
    """
    The result of a job.

    Attributes:
        rows: Number of rows of each table.
        unread: Captures of which no packet could be read, with the reasons; without files of other
            formats that were found in a folder or by a pattern.
    """

    rows: dict[str, int]
    unread: dict[str, str]


@dataclass(frozen=True, slots=True)
class JobState:
    """
    All that decides how a job is divided into tasks.

    Attributes:
        release: The release of kafkashark.
        options: Hashes of the options, which may be secret, by name.
        captures: Path, size and time of the first packet of each file, in order.
        range_bytes: Size of a task's range.
        parts: Number of parts for connections across ranges, as requested.
        cores: Number of cores of the cluster when the job began.
    """

    release: str
    options: Mapping[str, str]
    captures: list[list[Any]]
    range_bytes: int
    parts: int
    cores: int

    @classmethod
    def of(cls, collection: Collection, request: Request, cores: int) -> JobState:
        """Return the state of a new job."""
        captures: list[list[Any]] = [
            [each.path, each.size, each.first_ns] for each in collection.files
        ]
        options = _hashes(request.options)
        options |= {"summaries": str(request.summaries), "format": request.format}
        return cls(release(), options, captures, request.range_bytes, request.parts, cores)

    def save(self, out: str) -> None:
        """Write the state into the folder of the tables."""
        with atomic_write(join_path(out, STATE_FILE), private=True) as file:
            file.write(json.dumps(asdict(self)).encode())

    def continuing(self, out: str) -> JobState | None:
        """
        Return the state of the job in a folder, which this one continues; None without one.

        Raises:
            UsageError: The job there was another one.
        """
        stored = _read(out, STATE_FILE)
        if stored is None:
            return None
        difference = self._difference(stored)
        if difference:
            raise UsageError(f"--resume: the job in {out} {difference}; --overwrite starts anew")
        return replace(self, cores=int(stored["cores"]))

    def _difference(self, stored: Mapping[str, Any]) -> str:
        """Return how a stored job differs from this one; empty if it does not."""
        if stored.get("release") != self.release:
            return f"was begun by release {stored.get('release')} of kafkashark"
        theirs = stored["options"]
        for name, value in self.options.items():
            if theirs.get(name) != value:
                return f"was begun with another value of the option {name}"
        for name in ("range_bytes", "parts"):
            if stored[name] != getattr(self, name):
                return f"was begun with {name} {stored[name]}, not {getattr(self, name)}"
        before = {path: rest for path, *rest in stored["captures"]}
        now = {path: rest for path, *rest in self.captures}
        for path in (*now, *before):
            if before.get(path) != now.get(path):
                return f"was begun with other captures: {path} is new, missing or has changed"
        return ""


def is_unfinished(out: str) -> bool:
    """Return whether a folder has a job without its marker of success."""
    return _read(out, SUCCESS_FILE) is None and _read(out, STATE_FILE) is not None


def mark_success(out: str, made: Made) -> None:
    """Write the marker that all tables are complete."""
    with atomic_write(join_path(out, SUCCESS_FILE)) as file:
        file.write(json.dumps(asdict(made)).encode())


def complete_tables(out: str) -> Made | None:
    """Return the result of the job in a folder; None if it is not complete."""
    stored = _read(out, SUCCESS_FILE)
    return None if stored is None else Made(stored["rows"], stored["unread"])


def _read(out: str, name: str) -> dict[str, Any] | None:
    """Return the values in a file; None without one of ours."""
    path = join_path(out, name)
    try:
        with open_file(path) as file:
            stored = json.loads(file.read())
    except ReadError:
        raise
    except (CaptureError, ValueError):
        return None
    return stored if isinstance(stored, dict) else None


def _hashes(options: TableOptions) -> dict[str, str]:
    """Return a hash of each option."""
    found = {}
    for each in fields(options):
        if each.name not in _NOT_COMPARED:
            value: Any = getattr(options, each.name)
            if isinstance(value, frozenset):
                value = sorted(value)
            elif each.name == "values" and value is not None:
                value = replace(value, user="")
            found[each.name] = blake2b(repr(value).encode(), digest_size=8).hexdigest()
    return found


def check_request(request: Request) -> None:
    """
    Check that captures exist, and that nothing would be replaced, before anything is removed.

    Raises:
        UsageError: No captures exist, or existing data would be replaced.
        CaptureError: A named capture does not exist.
    """
    if request.overwrite and request.resume:
        raise UsageError("give either --overwrite or --resume")
    if not request.resume:
        require_replaceable(request)
    if not expand_paths(request.captures):
        raise UsageError("no captures found")


def require_replaceable(request: Request) -> None:
    """
    Check that no existing data is replaced, except on request.

    Raises:
        UsageError: It would be.
    """
    if request.overwrite or not has_files(request.out):
        return
    if is_unfinished(request.out):
        raise UsageError(
            f"{request.out} has an unfinished job: --resume goes on, --overwrite starts anew"
        )
    raise UsageError(f"{request.out} is not empty; --overwrite replaces its tables")


def clear_tables(out: str) -> None:
    """Remove all tables, and the files that belong to them; first those that call them complete."""
    for name in (SUCCESS_FILE, STATE_FILE):
        remove_file(join_path(out, name))
    others = "_checkpoint", "_names", "_numbers", "_nameless", "summaries", "iceberg"
    for table in (*SCHEMAS, WORK, *others):
        remove_folder(join_path(out, table))
