"""Names mapped to the target and back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.conversion.resource_names import NO_ID, NameMap, TopicIds, share_key
from cluster.fields.kafka_enums import INTERNAL_TOPICS
from tests.replay.support.builders import topology, uuid

WORDS = st.text("abz.-_", min_size=1, max_size=5)


@given(
    name=WORDS,
    pairs=st.dictionaries(WORDS, WORDS, max_size=2),
    prefix=st.text("xy-.", max_size=3),
    copy=st.integers(0, 2),
)
def test_names_map_both_ways(name: str, pairs: dict[str, str], prefix: str, copy: int) -> None:
    names = NameMap(pairs, prefix, copy)
    assert names.unprefixed(names.prefixed(name)) == name
    live = names.topic(name)
    others = [old for old in [*pairs, name] if old != name and names.topic(old) == live]
    if not others:
        assert names.captured_topic(live) == name
    if copy:
        assert live != NameMap(pairs, prefix).topic(name)


@pytest.mark.parametrize("name", ["", "*", *sorted(INTERNAL_TOPICS)])
def test_names_outside_the_mapping_are_unchanged(name: str) -> None:
    names = NameMap({}, "p-", 1)
    assert names.topic(name) == names.captured_topic(name) == name


def test_groups_have_the_prefix_but_not_their_wildcard() -> None:
    names = NameMap({"g": "other"}, "p-", 1)
    assert [names.prefixed(each) for each in ("g", "", "*")] == ["p-copy1-g", "", "*"]
    assert names.topic("t") == "p-copy1-t"
    assert names.topic("g") == "copy1-other"


def test_has_changes_shows_whether_names_are_mapped() -> None:
    assert not NameMap().has_changes
    assert NameMap({"a": "b"}).has_changes
    assert NameMap(copy=1).has_changes


@pytest.mark.parametrize("pattern", ["a.*", "^a.*", "a|b", ""])
def test_patterns_match_the_new_names(pattern: str) -> None:
    names = NameMap({}, "p.", 2)
    new = names.pattern(pattern)
    assert names.captured_pattern(new) == pattern
    for name in ("a", "ab", "b", "c"):
        assert bool(re.fullmatch(pattern, name)) == bool(
            pattern and re.fullmatch(new, names.topic(name))
        )
    assert NameMap().pattern(pattern) == pattern


def test_topic_ids_are_learned_from_messages_and_the_target() -> None:
    ids = TopicIds(topology({"t": 7}))
    assert (ids.topic_id("t"), ids.topic_name(uuid(7))) == (uuid(7), "t")
    ids.learn({uuid(8): "u"})
    assert (ids.topic_id("u"), ids.topic_name(uuid(8))) == (uuid(8), "u")
    assert ids.topic_id("v") is None
    assert TopicIds().topic_name(NO_ID) is None


def test_keys_of_share_partitions() -> None:
    key = "a:b:AAAAAAAAAAAAAAAAAAAABw:3"
    assert share_key(key, str.upper, lambda each: uuid(each.int + 1)) == (
        "A:B:AAAAAAAAAAAAAAAAAAAACA:3"
    )
    assert share_key("odd", str.upper, lambda each: each) == "odd"
    assert share_key("a:x:1", str.upper, lambda each: each) == "a:x:1"
