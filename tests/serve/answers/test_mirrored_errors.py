"""Any request can be refused, element by element."""

from __future__ import annotations

import pytest
from construct import Container

from dissector.protocol.api import Api
from dissector.protocol.apis import KEYS, all_apis
from serve.answers.mirrored_errors import error_answer
from serve.forms.canonical_body import canonical_version, zero_body


@pytest.mark.parametrize("api", all_apis(), ids=lambda api: api.name)
def test_every_api_can_be_refused(api: Api) -> None:
    version = canonical_version(api.key)
    answer = error_answer(api.key, zero_body(api.request, version), -1)
    assert api.response.codec(version).build(answer)


def test_errors_are_in_elements_only() -> None:
    topic = Container(name="orders", partitions=[Container(partition_index=3, timestamp=-1)])
    answer = error_answer(KEYS["ListOffsets"], Container(topics=[topic]), 3)
    (part,) = answer.topics[0].partitions
    assert (answer.topics[0].name, part.partition_index, part.error_code) == ("orders", 3, 3)
    groups = error_answer(KEYS["DescribeGroups"], Container(groups=["a", "b"]), 15)
    assert [(each.group_id, each.error_code) for each in groups.groups] == [("a", 15), ("b", 15)]


def test_a_response_without_elements_has_the_error() -> None:
    answer = error_answer(KEYS["Heartbeat"], Container(group_id="g"), 25)
    assert answer.error_code == 25
