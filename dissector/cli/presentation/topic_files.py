"""Records in a Parquet file for each topic, with typed columns for keys and values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dissector.engine.tables import polars_tables
from dissector.engine.tables.column_types import Columns
from dissector.errors import UsageError
from dissector.installation import extra_needed
from dissector.values.value_shapes import NULL, Shape, column_type, fitted, merged, shape_of

if TYPE_CHECKING:
    import polars

MAX_TOPICS = 10_000

_SIDES = ("key_decoded", "value_decoded")


def check_folder(name: str | None) -> Path:
    """
    Return a folder that nothing is in, so that no file is overwritten.

    Raises:
        UsageError: It is a file, or not empty; an extra is missing.
    """
    if find_spec("polars") is None:
        raise UsageError(extra_needed("--values-as struct", "tables"))
    if name is None or name == "-":
        raise UsageError("--values-as struct writes a file for each topic: -o DIR")
    folder = Path(name)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{name}: --values-as struct needs a new or an empty folder")
    return folder


def write_topic_files(parts: Iterable[Columns], folder: Path) -> None:
    """
    Write records with the columns of decoded keys and values.

    Rows wait in temporary files until the types of all values are known.

    Raises:
        UsageError: There are too many topics.
    """
    from dissector.polars_extra import polars

    schema = {**polars_tables.record_schema(), **polars_tables.value_schema()}
    waiting: dict[str | None, list[Path]] = {}
    shapes: dict[tuple[str | None, str], Shape] = {}
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="kafkashark-", dir=folder) as spool:
        for frame in polars_tables.part_frames(iter(parts), schema):
            for (topic,), rows in frame.group_by("topic", maintain_order=True):
                files = waiting.setdefault(topic, [])
                if len(waiting) > MAX_TOPICS:
                    raise UsageError(f"more than {MAX_TOPICS:,} topics: choose some with -Y")
                files.append(Path(spool) / f"{len(waiting)}-{len(files)}.arrow")
                rows.write_ipc(files[-1])
                for side in _SIDES:
                    found = merged(map(shape_of, _values(rows[side])))
                    shapes[topic, side] = merged((shapes.get((topic, side), NULL), found))
        for number, (topic, files) in enumerate(waiting.items()):
            for file in files:
                rows = polars.read_ipc(BytesIO(file.read_bytes()))
                typed = [_typed(rows[side], shapes[topic, side]) for side in _SIDES]
                rows.with_columns(typed).write_ipc(file)
            polars.scan_ipc(files).sink_parquet(folder / _file_name(topic, number))


def _values(texts: polars.Series) -> Iterable[object]:
    return (None if each is None else json.loads(each) for each in texts)


def _typed(texts: polars.Series, shape: Shape) -> polars.Series:
    from dissector.polars_extra import polars

    values = [fitted(each, shape) for each in _values(texts)]
    return polars.Series(texts.name, values, dtype=column_type(shape))


def _file_name(topic: str | None, number: int) -> str:
    """Return the file of a topic; names that are no file names have a number."""
    if topic is not None and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,248}", topic):
        return f"{topic}.parquet"
    return f"topic %{number}.parquet"
