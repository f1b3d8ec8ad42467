"""
Display filters: `api == Produce and latency_ms > 50 and response.responses.name contains "ord"`.

Names are columns of `pairs`, Wireshark's names for them (`kafka.api_key`, `ip.addr`, `tcp.port`),
and the path of any field of any body (`request.acks`); functions and slices of them too. A path
through arrays, or a list column, means every element: a test is true if it is true for any of them,
`!=` and `===` if for all of them, as in Wireshark 4; `any` and `all` before a name say which. A
bare name is true where it has a value that is not null. A comparison with a field that is null or
absent is false, except with `== null`. `matches` takes a regular expression of Python's `re`, found
anywhere, without regard to case unless it begins with `(?-i)`. `!` binds tighter than `and`, and
`and` tighter than `or`.
"""

from dissector.filter.display import Filter, parse, parse_with_values
from dissector.filter.evaluate import Row, values_of
from dissector.filter.grammar import parse_operand
from dissector.filter.masks import Table
from dissector.filter.names import field_list, resolve
from dissector.filter.operands import BodyPath, Column, Name, UnknownName

__all__ = [
    "BodyPath",
    "Column",
    "Filter",
    "Name",
    "Row",
    "Table",
    "UnknownName",
    "field_list",
    "parse",
    "parse_operand",
    "parse_with_values",
    "resolve",
    "values_of",
]
