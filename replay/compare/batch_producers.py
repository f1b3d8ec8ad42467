"""
Producers of fetched batches: those that the replay wrote keep their producer.

A consumer of committed records skips aborted ones by the producer ids in batches, so a wrong id
shows it aborted records, or hides others. Source: KIP-98, the layout of a record batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster.fields.batch_rewriter import BatchHeader
from dissector.protocol.records.layout import TRANSACTIONAL
from replay.mapping.appended_ranges import AppendedRecords
from replay.mapping.producer_ids import ProducerMap
from replay.model.outcome import Difference


def compare_producers(
    path: str,
    captured: BatchHeader,
    live: BatchHeader,
    appended: AppendedRecords,
    producers: ProducerMap,
) -> Iterator[Difference]:
    """
    Yield the differences in the producers of two batches with the same captured offset.

    Args:
        path: The path of the batch.
        captured: The header of the captured batch.
        live: The header of the target's batch.
        appended: The records that the replay appended; other batches are not compared.
        producers: The mapping of producers.
    """
    before, after = captured.producer, live.producer
    assert before is not None  # only batches of magic 2 are paired without being decoded
    assert after is not None
    if appended.live_at(captured.base_offset) != live.base_offset:
        return
    flags = [bool(each.attributes & TRANSACTIONAL) for each in (captured, live)]
    if flags[0] != flags[1]:
        yield Difference(f"{path}.transactional", *flags)
    if before.producer_id < 0 or after.producer_id < 0:
        if max(before.producer_id, after.producer_id) >= 0:
            yield Difference(f"{path}.producer_id", before.producer_id, after.producer_id)
        return
    wanted = producers.live(before.producer_id, before.epoch)
    found = producers.captured(after.producer_id, after.epoch)
    if wanted is None or (found is not None and found[:2] == before[:2]):
        return
    if wanted[0] != after.producer_id and (found is None or found[0] != before.producer_id):
        other = f"{after.producer_id} of the target, not the {wanted[0]} that wrote it"
        yield Difference(f"{path}.producer_id", before.producer_id, other)
    elif producers.knows(before.producer_id, before.epoch) and wanted[1] != after.epoch:
        other = f"{after.epoch} of the target, not the {wanted[1]} that wrote it"
        yield Difference(f"{path}.producer_epoch", before.epoch, other)
