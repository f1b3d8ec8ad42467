"""
Numbers of connections across batches of files: by first packet, as in one process.

The numbers of open connections are saved in a file for each batch, beside the tables. A retried
batch reads the file of its predecessor and overwrites its own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from dissector.capture.columns import Int64s
from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.filesystems import locate

FOLDER = "_numbers"

_NEXT = b"next"

_SCHEMA = pa.schema({"first": pa.int64(), "connection": pa.int64(), "ended": pa.bool_()})
"""The first packet of a connection, its number, and whether its last row was emitted."""


def assign_numbers(out: str, batch: int, begun: Int64s, ended: Int64s) -> str:
    """
    Number the connections that began in a batch of files; return the file with all numbers.

    Args:
        out: The folder of the tables.
        batch: The number of the batch.
        begun: The first packets of connections that began in it.
        ended: The numbers of connections that ended in it.
    """
    system, folder = locate(join_path(out, FOLDER))
    found = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    files = {int(each.base_name[:-8]): each.path for each in found if each.extension == "parquet"}
    earlier = [each for each in files if each < batch]
    first_packets = numbers = np.zeros(0, np.int64)
    next_number = 0
    if earlier:
        with system.open_input_file(files[max(earlier)]) as file:
            previous = pq.read_table(file)
        next_number = int(previous.schema.metadata[_NEXT])
        still_open = previous.filter(pa.compute.invert(previous["ended"]))
        first_packets, numbers = (np.asarray(still_open[name]) for name in ("first", "connection"))
    first_packets = np.concatenate([first_packets, np.sort(begun)])
    numbers = np.concatenate([numbers, np.arange(next_number, next_number + len(begun))])
    columns = [pa.array(each) for each in (first_packets, numbers, np.isin(first_packets, ended))]
    schema = _SCHEMA.with_metadata({_NEXT: str(next_number + len(begun)).encode()})
    path = join_path(out, FOLDER, f"{batch:08d}.parquet")
    with atomic_write(path) as file:
        pq.write_table(pa.Table.from_arrays(columns, schema=schema), file)
    for each in earlier:
        # A retry of this batch reads the file of its predecessor.
        if each < max(earlier):
            system.delete_file(files[each])
    return path


def read_numbers(path: str) -> tuple[Int64s, Int64s]:
    """Return the first packets of connections, in order, and their numbers."""
    system, inside = locate(path)
    with system.open_input_file(inside) as file:
        table = pq.read_table(file, columns=["first", "connection"])
    order = np.argsort(np.asarray(table["first"]))
    first_packets, numbers = (np.asarray(table[name])[order] for name in ("first", "connection"))
    return first_packets, numbers
