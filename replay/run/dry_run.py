"""A replay that sends nothing: what would be sent, to whom, and what would change in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from dissector.protocol.apis import api
from dissector.protocol.messages import Message
from dissector.view.text.escape import escaped
from replay.client.cluster import Cluster
from replay.client.router import Destination, destination_of
from replay.client.transport import format_address
from replay.compare.comparison_policy import ASSIGNED_ROLES
from replay.compare.tolerances import is_assigned
from replay.fields import batch_rewriter
from replay.fields.field_layout import Role, Scope
from replay.fields.roles import walk
from replay.mapping.id_map import IdMap
from replay.mapping.request_rewriter import rewrite
from replay.mapping.version_converter import choose_version
from replay.model.outcome import Change
from replay.model.step import Step
from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.report.text_report import value_text
from replay.run import event_loop
from replay.run.orchestrator import target
from replay.sessions.missing_requests import Beside, MissingRequests

FROM_TARGET = ASSIGNED_ROLES | {Role.OFFSET, Role.SEQUENCE, Role.SESSION_EPOCH}
"""What only the target can give, so that a rehearsal says that it changes, not to what."""

_INSIDE_BATCHES = (Role.PRODUCER_ID, Role.PRODUCER_EPOCH, Role.SEQUENCE)
_MOST_NAMED = 3
_NAMES = frozenset({Role.TOPIC, Role.GROUP, Role.TRANSACTIONAL_ID, Role.COORDINATOR_KEY})
_WHERE = {
    Destination.LEADER: (Role.TOPIC, "leader of"),
    Destination.GROUP: (Role.GROUP, "coordinator of group"),
    Destination.TRANSACTION: (Role.TRANSACTIONAL_ID, "coordinator of"),
}


def rehearse(plan: Plan, setting: TargetSettings) -> Iterator[str]:
    """Yield a line for each step of one pass, and at the end the numbers."""
    world = IdMap(None, setting.names(0), setting.offsets)
    world.captured_topics.learn(plan.topic_ids)
    sent, missing = 0, MissingRequests(plan.is_partial)
    left_out = Counter(plan.left_out)
    for step in islice(plan, setting.play_options.limit):
        beside = Beside() if step.left_out else missing.beside(step)
        left_out[beside.refused] += bool(beside.refused)
        line, is_sent = _line(step, plan.begin_ns, world, beside)
        sent += is_sent
        yield line
    left_out = +left_out
    yield ""
    yield f"{sent:,} requests would be sent, {left_out.total():,} left out"
    for reason, count in left_out.most_common():
        yield f"  {count:,}  {escaped(reason)}"
    yield from _joining(plan)
    if plan.topics:
        topics = setting.live_topics(plan.topics)
        yield "topics, with the partitions that the capture shows"
        yield from (f"  {count:,}  {escaped(name)}" for name, count in topics.items())


def _joining(plan: Plan) -> Iterator[str]:
    """Yield the members that would join before anything else, as the capture lacks how they did."""
    strangers = plan.groups.strangers if plan.is_partial else {}
    if strangers:
        yield "members that would join first, as the capture lacks their joins"
        for group, members in strangers.items():
            yield f"  {len(members):,}  of group {escaped(group)}"


def offered(plan: Plan, setting: TargetSettings) -> Iterator[str]:
    """
    Yield what the target is: its brokers, and in which versions it would be asked.

    Raises:
        ReplayError: It can't be reached.
    """
    with target(plan, setting) as addresses:
        cluster = event_loop.run(_seen(addresses, setting))
    yield f"brokers of {escaped(setting.to)}"
    for node, broker in sorted(cluster.brokers.items()):
        yield f"  {node}  {escaped(format_address(broker.host, broker.port))}"
    yield "versions, as captured and as they would be sent"
    asked = {
        (step.captured.api_key, step.captured.api_version) for step in plan if not step.left_out
    }
    for key, version in sorted(asked):
        found = api(key)
        assert found is not None
        sent = choose_version(found, version, cluster.versions)
        how = "left out: the target offers none that we know" if sent is None else f"v{sent}"
        yield f"  {found.name} v{version} -> {how}"


async def _seen(addresses: list[str], setting: TargetSettings) -> Cluster:
    cluster = await Cluster.connect(addresses, setting.security, setting.play_options.timeout_s)
    cluster.close()
    return cluster


def _line(step: Step, begin_ns: int, world: IdMap, beside: Beside) -> tuple[str, bool]:
    captured = step.captured
    seconds = (captured.request_time_ns - begin_ns) / 1e9
    what = f"{captured.api} v{captured.api_version}"
    head = f"{step.number:>6}  {seconds:>11.6f}  #{captured.connection:<4}  {what:<24}"
    if step.left_out or beside.refused:
        return f"{head}  left out: {escaped(step.left_out or beside.refused)}", False
    message = captured.request_message()
    where = _where(step, message, world)
    given = _given(message)
    rewritten = rewrite(message, captured.api_version, world)
    if rewritten.refusal:
        return f"{head}  left out: {escaped(rewritten.refusal)}", False
    told = [*_told(rewritten.changes), *given]
    line = f"{head}  {where}" + (f"; {', '.join(told)}" if told else "")
    if beside.before:
        line += f"; after {', '.join(map(escaped, beside.before))}, which the capture lacks"
    return line, True


def _where(step: Step, message: Message, world: IdMap) -> str:
    way = destination_of(step.captured.api_key)
    if way is Destination.CONTROLLER:
        return "-> controller"
    if way in _WHERE:
        role, title = _WHERE[way]
        names = _names(message, role, world)
        if names:
            more = ", ..." if len(names) > _MOST_NAMED else ""
            return f"-> {title} {', '.join(map(escaped, names[:_MOST_NAMED]))}{more}"
    return f"-> broker in the place of {escaped(step.captured.broker)}"


def _names(message: Message, role: Role, world: IdMap) -> list[str]:
    """Return the topics, with partitions where they are told, or the groups that are named."""
    assert message.schema is not None
    assert message.body is not None
    wanted = frozenset({Role.PARTITION if role is Role.TOPIC else role})
    found: dict[str, None] = {}
    for place in walk(message.schema, message.api_version or 0, message.body, wanted):
        if role is not Role.TOPIC:
            name = world.live(role, place.value, place.scope)[0]
        else:
            topic = world.topic_of(place.scope)
            shown = str(place.scope.topic_id) if topic is None else world.names.topic(topic)
            name = f"{shown}-{place.value}"
        if name:
            found[str(name)] = None
    return list(found)


def _told(changes: list[Change]) -> Iterator[str]:
    """Yield each substitution once."""
    told = dict.fromkeys(
        f"{change.role} {value_text(change.captured, 40)} -> {value_text(change.sent, 40)}"
        for change in changes
        if change.role in _NAMES
    )
    yield from islice(told, _MOST_NAMED)
    if len(told) > _MOST_NAMED:
        yield f"{len(told) - _MOST_NAMED} more names"


def _given(message: Message) -> Iterator[str]:
    """Yield what the target gives in the place of what was captured."""
    assert message.schema is not None
    assert message.body is not None
    roles: dict[Role, None] = {}
    wanted = FROM_TARGET | {Role.RECORDS}
    for place in walk(message.schema, message.api_version or 0, message.body, wanted, Scope()):
        if place.role is Role.RECORDS:
            roles.update(dict.fromkeys(_inside(place.value)))
        elif place.value is not None and is_assigned(place.role, place.value):
            roles[place.role] = None
    if roles:
        yield f"{' '.join(roles)} from the target"


def _inside(records: bytes | None) -> tuple[Role, ...]:
    """Return what in record batches the target gives: nothing where no producer has an id."""
    pieces = batch_rewriter.batch_headers(records) if records else ()
    has_id = any(piece.producer and piece.producer.producer_id >= 0 for piece in pieces)
    return _INSIDE_BATCHES if has_id else ()
