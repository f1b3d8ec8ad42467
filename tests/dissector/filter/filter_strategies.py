"""Random filters."""

from __future__ import annotations

from hypothesis import strategies as st

from dissector.filter.literals import Literal
from dissector.filter.names import Name, resolve
from dissector.filter.nodes import (
    Always,
    And,
    Compare,
    Contains,
    Exists,
    Leaf,
    Matches,
    Node,
    Not,
    OneOf,
    Or,
    Range,
    Test,
)

OPS = ("==", "!=", "===", "!==", "<", "<=", ">", ">=")

numbers = st.integers(-3, 12).map(lambda n: Literal(str(n)))
texts = st.one_of(
    st.sampled_from(["", "orders", "pay", "rdkafka", "null", "é", '"', "\\", "\x1b", "and"]),
    st.text(max_size=5),
).map(lambda text: Literal(text, quoted=True))
null = st.just(Literal("null"))

NUMBERS = (
    "api_version",
    "correlation_id",
    "request.acks",
    "request.topic_data.partition_data.index",
)
TEXTS = ("client_id", "topics", "topic", "request.topic_data.name", "request.transactional_id")


def comparing(literals: st.SearchStrategy[Literal]) -> st.SearchStrategy[Test]:
    items = st.one_of(literals, null, st.builds(Range, literals, literals))
    return st.one_of(
        st.builds(Exists),
        st.builds(Compare, st.sampled_from(OPS), literals),
        st.builds(Compare, st.sampled_from(OPS[:4]), null),
        st.builds(OneOf, st.lists(items, min_size=1, max_size=4).map(tuple)),
    )


def leaf(names: tuple[str, ...], tests: st.SearchStrategy[Test]) -> st.SearchStrategy[Leaf]:
    found: st.SearchStrategy[Name] = st.sampled_from(names).map(resolve)
    return st.builds(Leaf, found, tests)


searching = st.one_of(
    st.builds(Contains, texts),
    st.builds(
        Matches, st.sampled_from(["^o", "a|b", "[0-9]$", ""]).map(lambda t: Literal(t, True))
    ),
)


def nodes() -> st.SearchStrategy[Node]:
    """Draw a tree of names of number and text columns and fields."""
    leaves = st.one_of(
        st.builds(Always),
        leaf(NUMBERS, comparing(numbers)),
        leaf(TEXTS, comparing(texts) | searching),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        ),
        max_leaves=12,
    )
