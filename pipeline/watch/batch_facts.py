"""Facts known when rows of a batch of files are written: names, brokers and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from dissector.capture.columns import Int64s
from dissector.values.value_settings import ValueSettings
from pipeline.split.task_spill import OutputLocation, read_rows_of
from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.filesystems import locate
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.incremental import FIRST_PACKETS
from pipeline.tables.shared_facts import lasting_facts, merge_facts, topic_names
from pipeline.tables.table_builder import FACTS
from pipeline.tables.table_schemas import FACTS_SCHEMA
from pipeline.watch.connection_numbers import assign_numbers, read_numbers

FOLDER = "_names"


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """
    The facts known with a batch.

    Attributes:
        facts: The names of topics, and the addresses of brokers.
        new_names: Names that no earlier batch contained, by topic ids.
        numbers: The file with the numbers of connections.
    """

    facts: dict[str, str]
    new_names: dict[str, str]
    numbers: str

    @classmethod
    def of(cls, out: str, batch: int, outputs: Sequence[OutputLocation]) -> BatchFacts:
        """
        Save the facts of a batch of files beside the tables; return all facts known with it.

        Args:
            out: The folder of the tables.
            batch: The number of the batch; facts of later ones are ignored.
            outputs: The outputs of its parts.
        """
        begun, ended = (
            _first_packets(outputs, FIRST_PACKETS),
            _first_packets(outputs, "connections"),
        )
        batch_facts = pa.Table.from_batches(read_rows_of(outputs, FACTS), FACTS_SCHEMA)
        earlier = _earlier_facts(out, batch)
        _save_facts(out, batch, lasting_facts(batch_facts))
        facts = merge_facts([*earlier.to_batches(), *batch_facts.to_batches()])
        earlier_facts = merge_facts(earlier.to_batches())
        new_names = {
            key: name for key, name in topic_names(facts).items() if key not in earlier_facts
        }
        return cls(facts, new_names, assign_numbers(out, batch, begun, ended))

    def row_finisher(
        self, show_secrets: bool = False, values: ValueSettings | None = None
    ) -> RowFinisher:
        """Return the finisher of the batch's rows."""
        first_packets, numbers = read_numbers(self.numbers)
        return RowFinisher(first_packets, self.facts, show_secrets, numbers, values)


def _first_packets(outputs: Sequence[OutputLocation], table: str) -> Int64s:
    """Return the first packets of connections in a table."""
    columns: list[Any] = [np.asarray(each["connection"]) for each in read_rows_of(outputs, table)]
    first_packets: Int64s = np.concatenate([np.zeros(0, np.int64), *columns])
    return first_packets


def _save_facts(out: str, batch: int, facts: pa.Table) -> None:
    """Save the facts of a batch of files."""
    if len(facts):
        with atomic_write(join_path(out, FOLDER, f"{batch:08d}.parquet")) as file:
            pq.write_table(facts, file)


def _earlier_facts(out: str, batch: int) -> pa.Table:
    """Return the facts of earlier batches."""
    tables = [FACTS_SCHEMA.empty_table()]
    system, folder = locate(join_path(out, FOLDER))
    for each in system.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
        if each.extension == "parquet" and int(each.base_name[:8]) < batch:
            with system.open_input_file(each.path) as file:
                tables.append(pq.read_table(file))
    return pa.concat_tables(tables)
