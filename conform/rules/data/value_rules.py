"""Rules D01 to D05: keys and values, and the schemas that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from conform.evidence.batch_observation import BatchObservation
from conform.evidence.decoded_records import SIDES, DecodedPart, decoded_parts
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import none_of_batch
from dissector.values.avro.avro_compatibility import reading_problem
from dissector.values.carriers.carried_schema import ref_text
from dissector.values.carriers.schema_headers import SCHEMA_HEADERS, schemas_in_headers
from dissector.values.carriers.schema_prefixes import schemas_in_prefix
from dissector.values.value_limits import ValueProblem

_PRODUCE = ("Produce",)
_SOURCE = (
    "https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/ "
    "(wire format)"
)
_VERSION = re.compile(r"(.*) v(\d+)$")
_MAX_TOPICS = 10_000
_PLAIN = "JSON or text"
"""A text may look like JSON."""


def _judge(
    observation: BatchObservation, reporter: Reporter, faults: Callable[[DecodedPart], str]
) -> None:
    """Judge a batch, if values can be decoded, and report the first fault of its records."""
    parts = decoded_parts(observation)
    if not parts:
        return
    reporter.count_judged()
    for part in parts:
        if found := faults(part):
            _report(observation, reporter, part, found)
            return


def _report(
    observation: BatchObservation, reporter: Reporter, part: DecodedPart, found: str
) -> None:
    reporter.report_violation(
        Side.CLIENT,
        f"the {part.side} of record {part.record} in topic {observation.topic!r}: {found}",
        message=observation.message,
        path=observation.path,
        span=observation.span(),
    )


def _is_unknown(part: DecodedPart) -> bool:
    return part.found.format is None and part.found.schema is not None


@rule(
    "D01",
    "A key or value does not decode by its schema",
    Severity.WARNING,
    source=_SOURCE,
    asks="A key or value that names a schema has exactly the bytes of one value of it.",
    example="a byte behind the end of an Avro record",
    on="batch",
    plain_batch=none_of_batch,
    apis=_PRODUCE,
)
def check_value_decodes(observation: BatchObservation, reporter: Reporter) -> None:
    """Decode the keys and values of a batch."""
    _judge(
        observation,
        reporter,
        lambda part: (
            f"{part.found.problem} ({part.found.schema!r})"
            if part.found.problem and not _is_unknown(part)
            else ""
        ),
    )


@rule(
    "D02",
    "A key or value names an unknown schema",
    Severity.WARNING,
    source=_SOURCE,
    asks="The id of a schema that a key or value names is one of the registry.",
    example="id 99, which neither the capture nor --values has",
    on="batch",
    plain_batch=none_of_batch,
    apis=_PRODUCE,
)
def check_schema_known(observation: BatchObservation, reporter: Reporter) -> None:
    """Look for unknown schemas in a batch."""
    _judge(
        observation,
        reporter,
        lambda part: f"{part.found.problem}" if _is_unknown(part) else "",
    )


@rule(
    "D03",
    "The headers and the first bytes of a value name different schemas",
    Severity.WARNING,
    source="confluent-kafka-python, schema_registry/serde.py: a schema is named in a header or "
    "before the value, not in both",
    asks="A record whose header names the schema of its value has no other known schema before it.",
    example="__value_schema_id has id 7, and the value begins with that of id 8",
    on="batch",
    plain_batch=none_of_batch,
    apis=_PRODUCE,
)
def check_one_schema_named(observation: BatchObservation, reporter: Reporter) -> None:
    """Compare the schemas in headers with those in the first bytes."""
    values = observation.capture_state.values

    def fault(part: DecodedPart) -> str:
        is_key = SIDES[part.side]
        if values is None or SCHEMA_HEADERS[is_key].isdisjoint(part.headers) or not part.data:
            return ""
        find = values.reader.store.find
        named = [
            find(each.ref) for each in schemas_in_headers(part.headers, part.data, is_key=is_key)
        ]
        try:
            before = [each for each in schemas_in_prefix(part.data) if each.is_sure]
        except ValueProblem:
            return ""
        for each in before:
            schema = find(each.ref)
            if schema is not None and any(named) and schema not in named:
                return (
                    f"its header and its first bytes name different schemas ({ref_text(each.ref)})"
                )
        return ""

    _judge(observation, reporter, fault)


class _TopicHistory:
    """Formats and schemas of the keys and values of each topic so far."""

    def __init__(self) -> None:
        self.formats: dict[tuple[str, str], set[str]] = {}
        self.schemas: dict[tuple[str, str], dict[str, object]] = {}


@rule(
    "D04",
    "The values of one topic have several formats",
    Severity.WARNING,
    source="RecordNameStrategy and TopicNameStrategy of the registries give a topic schemas of one "
    "kind; consumers have one deserializer for each side",
    asks="The keys of a topic have one format, and so have its values.",
    example="a value in JSON in a topic with Avro",
    on="batch",
    plain_batch=none_of_batch,
    apis=_PRODUCE,
)
def check_one_format(observation: BatchObservation, reporter: Reporter) -> None:
    """Compare the formats of a batch with those of its topic so far."""
    topics = observation.capture_state.state(_TopicHistory).formats

    def fault(part: DecodedPart) -> str:
        if part.found.format is None or part.found.problem:
            return ""
        name = part.found.format.rpartition("+")[2]
        name = _PLAIN if name in ("json", "text") else name
        known = topics.setdefault((observation.topic, part.side), {name})
        if name in known or len(topics) > _MAX_TOPICS:
            return ""
        others = ", ".join(sorted(known))
        known.add(name)
        return f"it is {name}, others are {others}"

    _judge(observation, reporter, fault)


@rule(
    "D05",
    "A new schema can't read what the one before it wrote",
    Severity.WARNING,
    source="https://docs.confluent.io/platform/current/schema-registry/fundamentals/"
    "schema-evolution.html (BACKWARD, the default); Avro's specification, schema resolution",
    asks="A version of an Avro schema in a topic reads the values of the version before it: new "
    "fields have a default, and types change only as Avro promotes them.",
    example="a new field without a default",
    on="batch",
    plain_batch=none_of_batch,
    apis=_PRODUCE,
)
def check_compatible_change(observation: BatchObservation, reporter: Reporter) -> None:
    """Compare each new Avro schema of a topic with the ones before it."""
    topics = observation.capture_state.state(_TopicHistory).schemas

    def fault(part: DecodedPart) -> str:
        found = part.found
        declared = None if found.origin is None else found.origin[0].declared
        if found.schema is None or declared is None or len(topics) > _MAX_TOPICS:
            return ""
        known = topics.setdefault((observation.topic, part.side), {})
        if found.schema in known:
            return ""
        problems = [
            f"{new!r} can't read what {old!r} wrote: {problem}"
            for old, new, problem in _problems(known, found.schema, declared)
        ]
        known[found.schema] = declared
        return problems[0] if problems else ""

    _judge(observation, reporter, fault)


def _problems(
    known: dict[str, object], label: str, declared: object
) -> Iterator[tuple[str, str, str]]:
    """Yield the older and the newer schema of a pair that is not compatible, and why."""
    subject, version = _subject_and_version(label)
    for other, other_declared in known.items():
        other_subject, other_version = _subject_and_version(other)
        if other_subject != subject:
            continue
        if version >= other_version:
            problem = reading_problem(declared, other_declared)
            older, newer = other, label
        else:
            problem = reading_problem(other_declared, declared)
            older, newer = label, other
        if problem:
            yield older, newer, problem


def _subject_and_version(label: str) -> tuple[str, int]:
    found = _VERSION.match(label)
    return (found[1], int(found[2])) if found else (label, 0)
