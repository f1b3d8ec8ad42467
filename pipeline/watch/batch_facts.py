"""What is known when the rows of a batch of files are written: names, brokers, and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from dissector.capture.columns import Int64s
from pipeline.split.task_spill import OutputLocation, read_rows_of
from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.filesystems import locate
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.incremental import FIRST_PACKETS
from pipeline.tables.shared_facts import lasting_facts, merge_facts, topic_names
from pipeline.tables.table_builder import FACTS
from pipeline.tables.table_schemas import FACTS_SCHEMA as NAMES_SCHEMA
from pipeline.watch.connection_numbers import assign_numbers, read_numbers

FOLDER = "_names"


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """
    What is known with a batch.

    Attributes:
        facts: The names of topics, and who is a broker.
        new_names: Those names that no batch before it has told, by ids.
        numbers: The file with the numbers of connections.
    """

    facts: dict[str, str]
    new_names: dict[str, str]
    numbers: str

    @classmethod
    def of(cls, out: str, batch: int, places: Sequence[OutputLocation]) -> BatchFacts:
        """
        Keep what a batch of files has told beside the tables; return all that is known with it.

        Args:
            out: Where the tables are.
            batch: The number of the batch; what a later one told does not count.
            places: Where its parts have left what they told.
        """
        begun, ended = _firsts(places, FIRST_PACKETS), _firsts(places, "connections")
        told = pa.Table.from_batches(read_rows_of(places, FACTS), NAMES_SCHEMA)
        before = _told_before(out, batch)
        _keep(out, batch, lasting_facts(told))
        whole = merge_facts([*before.to_batches(), *told.to_batches()])
        known = merge_facts(before.to_batches())
        news = {key: name for key, name in topic_names(whole).items() if key not in known}
        return cls(whole, news, assign_numbers(out, batch, begun, ended))

    def row_finisher(self, show_secrets: bool = False) -> RowFinisher:
        """Return what makes rows of the batch rows of the whole."""
        firsts, numbers = read_numbers(self.numbers)
        return RowFinisher(firsts, self.facts, show_secrets, numbers)


def _firsts(places: Sequence[OutputLocation], table: str) -> Int64s:
    """Return the first packets of connections in a table."""
    columns: list[Any] = [np.asarray(each["connection"]) for each in read_rows_of(places, table)]
    firsts: Int64s = np.concatenate([np.zeros(0, np.int64), *columns])
    return firsts


def _keep(out: str, batch: int, told: pa.Table) -> None:
    """Keep what a batch of files has told."""
    if len(told):
        with atomic_write(join_path(out, FOLDER, f"{batch:08d}.parquet")) as file:
            pq.write_table(told, file)


def _told_before(out: str, batch: int) -> pa.Table:
    """Return what was told before a batch; what a later one told does not count."""
    tables = [NAMES_SCHEMA.empty_table()]
    system, folder = locate(join_path(out, FOLDER))
    for each in system.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
        if each.extension == "parquet" and int(each.base_name[:8]) < batch:
            with system.open_input_file(each.path) as file:
                tables.append(pq.read_table(file))
    return pa.concat_tables(tables)
