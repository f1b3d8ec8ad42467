"""Dry run: lists the requests, their brokers, and the substitutions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from cluster.client.cluster import Cluster
from cluster.client.router import Destination, destination_of
from cluster.client.transport import format_address
from cluster.conversion.change import Change
from cluster.conversion.version_converter import choose_version
from cluster.fields import batch_rewriter
from cluster.fields.field_layout import Scope
from cluster.fields.roles import walk
from dissector.protocol.apis import api
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from dissector.view.text.escape import escaped
from replay.compare.comparison_policy import ASSIGNED_ROLES
from replay.compare.tolerances import is_assigned
from replay.mapping.id_map import IdMap
from replay.mapping.request_rewriter import rewrite
from replay.model.step import Step
from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.report.report_words import value_text
from replay.run import event_loop
from replay.run.orchestrator import running_target
from replay.sessions.missing_requests import MissingRequests, SynthesisedRequests

ASSIGNED_BY_TARGET = ASSIGNED_ROLES | {Role.OFFSET, Role.SEQUENCE, Role.SESSION_EPOCH}
"""Roles of values that only the target assigns: a dry run names them without the new value."""

_BATCH_ROLES = (Role.PRODUCER_ID, Role.PRODUCER_EPOCH, Role.SEQUENCE)
_MAX_NAMED = 3
_NAMES = frozenset({Role.TOPIC, Role.GROUP, Role.TRANSACTIONAL_ID, Role.COORDINATOR_KEY})
_WHERE = {
    Destination.LEADER: (Role.TOPIC, "leader of"),
    Destination.GROUP: (Role.GROUP, "coordinator of group"),
    Destination.TRANSACTION: (Role.TRANSACTIONAL_ID, "coordinator of"),
}


def dry_run_lines(plan: Plan, settings: TargetSettings) -> Iterator[str]:
    """Yield a line for each step of one pass, and a summary at the end."""
    ids = IdMap(None, settings.names(0), settings.offsets)
    ids.captured_topics.learn(plan.topic_ids)
    sent, missing = 0, MissingRequests(plan.is_partial)
    left_out = Counter(plan.left_out)
    for step in islice(plan, settings.play_options.limit):
        synthesised = SynthesisedRequests() if step.left_out else missing.predict(step)
        left_out[synthesised.exclusion] += bool(synthesised.exclusion)
        line, is_sent = _line(step, plan.begin_ns, ids, synthesised)
        sent += is_sent
        yield line
    left_out = +left_out
    yield ""
    yield f"{sent:,} requests would be sent, {left_out.total():,} left out"
    for reason, count in left_out.most_common():
        yield f"  {count:,}  {escaped(reason)}"
    yield from _joining_members(plan)
    if plan.topics:
        topics = settings.live_topics(plan.topics)
        yield "topics, with the partitions that the capture shows"
        yield from (f"  {count:,}  {escaped(name)}" for name, count in topics.items())


def _joining_members(plan: Plan) -> Iterator[str]:
    """Yield groups with members that would join first, because the capture lacks their joins."""
    joining = plan.groups.uncaptured_members if plan.is_partial else {}
    if joining:
        yield "members that would join first, as the capture lacks their joins"
        for group, members in joining.items():
            yield f"  {len(members):,}  of group {escaped(group)}"


def target_lines(plan: Plan, settings: TargetSettings) -> Iterator[str]:
    """
    Yield the brokers of the target, and the version of each request.

    Raises:
        ReplayError: The target can't be reached.
    """
    with running_target(plan, settings) as addresses:
        cluster = event_loop.run(_connect(addresses, settings))
    yield f"brokers of {escaped(settings.to)}"
    for node, broker in sorted(cluster.brokers.items()):
        yield f"  {node}  {escaped(format_address(broker.host, broker.port))}"
    yield "versions, as captured and as they would be sent"
    versions = {
        (step.captured.api_key, step.captured.api_version) for step in plan if not step.left_out
    }
    for key, version in sorted(versions):
        found = api(key)
        assert found is not None
        sent = choose_version(found, version, cluster.versions)
        how = "left out: the target offers none that we know" if sent is None else f"v{sent}"
        yield f"  {found.name} v{version} -> {how}"


async def _connect(addresses: list[str], settings: TargetSettings) -> Cluster:
    cluster = await Cluster.connect(addresses, settings.security, settings.play_options.timeout_s)
    cluster.close()
    return cluster


def _line(
    step: Step, begin_ns: int, ids: IdMap, synthesised: SynthesisedRequests
) -> tuple[str, bool]:
    captured = step.captured
    seconds = (captured.request_time_ns - begin_ns) / 1e9
    what = f"{captured.api} v{captured.api_version}"
    head = f"{step.number:>6}  {seconds:>11.6f}  #{captured.connection:<4}  {what:<24}"
    if step.left_out or synthesised.exclusion:
        return f"{head}  left out: {escaped(step.left_out or synthesised.exclusion)}", False
    message = captured.request_message()
    where = _where(step, message, ids)
    given = _assigned_by_target(message)
    rewritten = rewrite(message, captured.api_version, ids)
    if rewritten.refusal:
        return f"{head}  left out: {escaped(rewritten.refusal)}", False
    notes = [*_substitutions(rewritten.changes), *given]
    line = f"{head}  {where}" + (f"; {', '.join(notes)}" if notes else "")
    if synthesised.before:
        line += f"; after {', '.join(map(escaped, synthesised.before))}, which the capture lacks"
    return line, True


def _where(step: Step, message: Message, ids: IdMap) -> str:
    destination = destination_of(step.captured.api_key)
    if destination is Destination.CONTROLLER:
        return "-> controller"
    if destination in _WHERE:
        role, title = _WHERE[destination]
        names = _names(message, role, ids)
        if names:
            more = ", ..." if len(names) > _MAX_NAMED else ""
            return f"-> {title} {', '.join(map(escaped, names[:_MAX_NAMED]))}{more}"
    return f"-> broker in the place of {escaped(step.captured.broker)}"


def _names(message: Message, role: Role, ids: IdMap) -> list[str]:
    """Return the names of a role in a request; topics as `topic-partition`."""
    assert message.schema is not None
    assert message.body is not None
    wanted = frozenset({Role.PARTITION if role is Role.TOPIC else role})
    found: dict[str, None] = {}
    for place in walk(message.schema, message.api_version or 0, message.body, wanted):
        if role is not Role.TOPIC:
            name = ids.live(role, place.value, place.scope)[0]
        else:
            topic = ids.topic_of(place.scope)
            shown = str(place.scope.topic_id) if topic is None else ids.names.topic(topic)
            name = f"{shown}-{place.value}"
        if name:
            found[str(name)] = None
    return list(found)


def _substitutions(changes: list[Change]) -> Iterator[str]:
    """Yield each substitution of a name once, up to a limit."""
    names = dict.fromkeys(
        f"{change.role} {value_text(change.captured, 40)} -> {value_text(change.sent, 40)}"
        for change in changes
        if change.role in _NAMES
    )
    yield from islice(names, _MAX_NAMED)
    if len(names) > _MAX_NAMED:
        yield f"{len(names) - _MAX_NAMED} more names"


def _assigned_by_target(message: Message) -> Iterator[str]:
    """Yield the roles of values that the target would assign, as one phrase."""
    assert message.schema is not None
    assert message.body is not None
    roles: dict[Role, None] = {}
    wanted = ASSIGNED_BY_TARGET | {Role.RECORDS}
    for place in walk(message.schema, message.api_version or 0, message.body, wanted, Scope()):
        if place.role is Role.RECORDS:
            roles.update(dict.fromkeys(_roles_in_batches(place.value)))
        elif place.value is not None and is_assigned(place.role, place.value):
            roles[place.role] = None
    if roles:
        yield f"{' '.join(roles)} from the target"


def _roles_in_batches(records: bytes | None) -> tuple[Role, ...]:
    """Return the roles that the target assigns in record batches; none without producer ids."""
    pieces = batch_rewriter.batch_headers(records) if records else ()
    has_id = any(batch.producer and batch.producer.producer_id >= 0 for batch in pieces)
    return _BATCH_ROLES if has_id else ()
