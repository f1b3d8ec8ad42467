from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.errors import FilterError
from dissector.filter import parse
from dissector.filter.grammar import MAX_DEPTH, MAX_LENGTH, parse_node
from dissector.filter.nodes import And, Leaf, Node, Not, Or
from tests.dissector.filter.filter_strategies import nodes

# The caret of each filter is under its ^.
WRONG = [
    ("", "^", "the filter is empty"),
    ("   ", "^", "the filter is empty"),
    ("apii == Produce", "^", "unknown name 'apii'; did you mean api?"),
    ("kafka.erorr == 0", "^", "did you mean kafka.error?"),
    ("request == 3", "^", "name a field of it"),
    (
        "request.ackss == 0",
        "        ^",
        "no API has a field 'ackss' in request; did you mean acks?",
    ),
    (
        "api and request.topic_data.partition_data.indexx > 1",
        "                                          ^",
        "no API has a field 'indexx' in request.topic_data.partition_data; did you mean index?",
    ),
    (
        "request.partition_data",
        "        ^",
        "did you mean request.topic_data.partition_data (Produce)?",
    ),
    (
        "response.high_watermark > 3",
        "         ^",
        "did you mean response.responses.partitions.high_watermark (Fetch) or "
        "response.topics.partitions.high_watermark (DescribeQuorum)?",
    ),
    ("request.topic_data[0].name == a", "        ^", "no index: request.topic_data is all items"),
    ("group_id == a", "^", "unknown name 'group_id'; did you mean request.group_id?"),
    ("kafka.group_idd == a", "^", "did you mean kafka.group_id?"),
    ("tcp.len > 3", "^", "names of tcp are tcp.port, tcp.srcport, tcp.dstport, tcp.stream"),
    ("packet == 3", "^", "did you mean frame.number?"),
    ("acks == 1", "^", "did you mean request.acks, or the column of `kafkashark records`?"),
    ("value == a", "^", "unknown name 'value'; it is a column of `kafkashark records`"),
    ("request.throttle_time_ms", "        ^", "did you mean response.throttle_time_ms?"),
    ("request.acks.x == 1", "             ^", "request.acks has no fields"),
    ("request..acks", "^", "name a field of it"),
    ("request.", "        ^", "no API has a field ''"),
    ('api_version == "abc"', "               ^", 'api_version: "abc" is not a number'),
    ("api_version == abc", "               ^", "abc is not a number"),
    ('api_version == "9"', "               ^", "is not a number"),
    ("latency_ms > 1s", "             ^", "is not a number"),
    ("api == Prduce", "       ^", "no API is called Prduce; did you mean Produce?"),
    ("api_key == Prduce", "           ^", "did you mean Produce?"),
    ("status == done", "          ^", "answered, unanswered, no_response, orphan"),
    ("error == NOT_A_LEADER", "         ^", "no error is called NOT_A_LEADER"),
    ("client == nowhere", "          ^", "nowhere is not an address"),
    ("response.topics.topic_id == 12", "                            ^", "12 is not a uuid"),
    ("response.topics.is_internal == 2", "                               ^", "neither true nor"),
    ("request.topic_data == 1", "                      ^", "name one of its fields"),
    ("status < answered", "       ^", "status is a status and has no order"),
    ("response.topics.is_internal > 0", "                            ^", "has no order"),
    ("api in {Fetch..Produce}", "             ^", "has no order"),
    ("api_version < null", "              ^", "null has no order"),
    ("api_version contains 3", "            ^", "api_version is a number, not text"),
    ("api_version matches 3", "            ^", "not text"),
    ('client_id matches "a("', "                  ^", "not a regular expression"),
    ('client_id matches "a{9999999999999}"', "                  ^", "not a regular expression"),
    ("api ==", "      ^", "expected a value, found the end of the filter"),
    ("api == and", "       ^", "expected a value, found and"),
    ("api in Fetch", "       ^", "'{' is missing"),
    ("api in {}", "        ^", "expected a value"),
    ("api in {Fetch", "             ^", "expected a value, found the end of the filter"),
    ("api = Fetch", "    ^", "write =="),
    ("api == Produce api_version == 3", "               ^", "'and' or 'or' is missing"),
    ("api and", "       ^", "expected a name, found the end of the filter"),
    ("and api", "^", "expected a name, found and"),
    ("(api", "    ^", "')' is missing"),
    ("api)", "   ^", "unmatched ')'"),
    ('client_id == "abc', "             ^", "the quote is not closed"),
    ("client_id == a*", "              ^", "a text with it needs quotes"),
    ("api & status", "    ^", "unexpected character '&'"),
    ('"api" == Fetch', "^", 'expected a name, found "api"'),
    ("kafka == 1", "      ^", "'and' or 'or' is missing"),
]


@pytest.mark.parametrize(("text", "caret", "what"), WRONG)
def test_a_wrong_filter_is_shown_with_a_caret(text: str, caret: str, what: str) -> None:
    with pytest.raises(FilterError) as error:
        parse(text)
    assert what in error.value.what
    assert error.value.shown().splitlines()[-1] == f"  {caret}"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "api" + ")" * 10_000,
        "!" * 10_000 + "api",
        "not " * 10_000 + "api",
        "!(" * 40 + "api" + ")" * 40,
        "api or " * 50_000 + "api",
        '"' + "x" * 200_000,
        "{" * 50_000,
    ],
)
def test_a_filter_too_large_is_an_error(text: str) -> None:
    with pytest.raises(FilterError):
        parse(text)


def test_a_filter_just_small_enough() -> None:
    assert isinstance(parse_node("(" * MAX_DEPTH + "api" + ")" * MAX_DEPTH), Leaf)
    many = " or ".join(["connection == 1"] * 5000)
    assert len(many) < MAX_LENGTH
    assert len(parse_node(many).parts) == 5000  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        (r"client_id == 'it\'s'", "it's"),
        (r'client_id == "say \"x\" \\"', 'say "x" \\'),
        (r'client_id == "\x41\u00e9\n\t"', "Aé\n\t"),
        (r'client_id == "\d+\."', r"\d+\."),
        ("client_id == a-b_c/d.e:1@h", "a-b_c/d.e:1@h"),
        ("client_id == 0", "0"),
        ('client_id == "null"', "null"),
        ("client_id == ''", ""),
    ],
)
def test_literals(text: str, literal: str) -> None:
    node = parse_node(text)
    assert isinstance(node, Leaf)
    assert node.test.literal.text == literal  # type: ignore[union-attr]


def test_not_binds_closest_then_and_then_or() -> None:
    match parse_node("api or not status == orphan and error"):
        case Or((Leaf(), And((Not(Leaf()), Leaf())))):
            pass
        case other:
            pytest.fail(f"{other!r}")


@given(nodes())
def test_a_printed_tree_parses_to_the_same_tree(node: Node) -> None:
    assert parse_node(str(node)) == node


PIECES = [
    *("api", "request.acks", "client_id", "request.", "error", "==", "!=", "<", "in", "{", "}"),
    *("..", ",", "(", ")", "!", "and", "or", "not", "&&", "contains", "matches", '"a"', '"', "'"),
    *("[", "null", "-1", "0x1f", "Produce", "\\", "\x1b[31m", "\udcff", "٣"),
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map(" ".join)))
@example('"\x1e"')
@example("api == \u202e")
@example("client_id matches " + "'" + "(" * 5000 + ")" * 5000 + "'")
@example("api_version == " + "9" * 5000)
@example("client == 1:" + "9" * 5000)
@example("latency_ms == 1e99999")
def test_any_text_is_a_filter_or_a_filter_error(text: str) -> None:
    error = error_of(text)
    if error is not None:
        assert 0 <= error.position <= len(text)
        assert error.shown().replace("\n", "").isprintable()
        assert len(error.shown().splitlines()) == 3


def error_of(text: str) -> FilterError | None:
    try:
        parse(text)
    except FilterError as error:
        return error
    return None
