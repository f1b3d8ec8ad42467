"""
Compares the partitions of Produce and Fetch responses with those of their requests, on the tape.

Each message has the sum of the digests of its partitions: the same sum means the same partitions.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conform.screens.item_keys import Digests, content_digests, mixed
from dissector.engine.records.produce_results import last_marked
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tape.tape import Tape
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import FETCH, PRODUCE
from dissector.protocol.program import FieldRef, programs

Ints: TypeAlias = NDArray[np.int64]

_OTHER, _TOPIC, _PARTITION = range(3)

_PATHS = {
    (PRODUCE, "topic_data.name"): _TOPIC,
    (PRODUCE, "topic_data.topic_id"): _TOPIC,
    (PRODUCE, "topic_data.partition_data.index"): _PARTITION,
    (PRODUCE, "responses.name"): _TOPIC,
    (PRODUCE, "responses.topic_id"): _TOPIC,
    (PRODUCE, "responses.partition_responses.index"): _PARTITION,
    (FETCH, "topics.topic"): _TOPIC,
    (FETCH, "topics.topic_id"): _TOPIC,
    (FETCH, "topics.partitions.partition"): _PARTITION,
    (FETCH, "responses.topic"): _TOPIC,
    (FETCH, "responses.topic_id"): _TOPIC,
    (FETCH, "responses.partitions.partition_index"): _PARTITION,
}


def partition_digests(table: Exchanges, tape: Tape, count: int) -> Digests:
    """Return the sum of the digests of the partitions in each of some messages."""
    category = _categories_of(len(programs().field_refs))[tape.field]
    partitions = np.flatnonzero(category == _PARTITION)
    sums = np.zeros(count, np.uint64)
    if not len(partitions):
        return sums
    topics = np.flatnonzero(category == _TOPIC)
    digests = np.zeros(len(category), np.uint64)
    digests[topics] = mixed(content_digests(table, tape, topics) + mixed(tape.value[topics]))
    topic = digests[last_marked(category == _TOPIC)[partitions]]
    np.add.at(sums, tape.message[partitions], mixed(topic + mixed(tape.value[partitions])))
    return sums


@per_schemas
def _categories_of(count: int) -> NDArray[np.uint8]:
    """Return the roles of the first `count` fields; programs only ever add fields."""
    return np.array([_category(ref) for ref in programs().field_refs[:count]], np.uint8)


def _category(ref: FieldRef | None) -> int:
    return _OTHER if ref is None else _PATHS.get((ref.key, ref.path), _OTHER)
