"""Deleted groups, and the deleting client, in every version."""

from __future__ import annotations

import pytest

from dissector.protocol.apis import api
from tests.conform.scene import scene_of
from tests.timeline.events_of import brief, corpus_events, events_of, only

DELETE_GROUPS, NON_EMPTY_GROUP = 42, 68


@pytest.mark.parametrize("version", list(api(DELETE_GROUPS).request.versions))  # type: ignore[union-attr]
def test_each_deleted_group_has_its_result(version: int) -> None:
    results = [{"group_id": "old"}, {"group_id": "busy", "error_code": NON_EMPTY_GROUP}]
    scene = scene_of((DELETE_GROUPS, version, {}, {"results": results}))
    deleted, refused = events_of(scene, "group")
    assert (deleted.subject, deleted.event) == ("old", "deleted")
    assert (refused.subject, refused.event, refused.cause) == (
        "busy",
        "not deleted",
        "NON_EMPTY_GROUP",
    )


def test_a_group_of_the_corpus() -> None:
    events = only(corpus_events("kafka39-java-admin.pcap", "group"), "deleted")
    assert brief(events) == [("deleted", "", True)]
    assert events[0].text == "with its offsets, by java-admin at 127.0.0.1"
