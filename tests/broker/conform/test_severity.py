"""
Kafka refuses requests that break rules about clients.

The clients of all breaking scenes send their bytes to a real broker; it must respond to the last
request with an error, or close the connection.
"""

from __future__ import annotations

import pytest

import tests.conform.rules.test_rule_cases  # noqa: F401  (imports all cases)
from conform.registry.rank import Severity
from conform.registry.rule import Side
from dissector import Exchange
from dissector.protocol.expected_response import expects_response
from dissector.protocol.facts import Facts, collect
from dissector.protocol.messages import decode_response
from tests.broker import artifacts
from tests.broker.conform.test_rules import Line
from tests.broker.conftest import StartCluster
from tests.broker.server_properties import Shape
from tests.conform.scene import BREAKS, Case, Scene, findings
from tests.default_frames import sized

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

METADATA, FIND_COORDINATOR = 3, 10
TOPICS = ("orders", "clicks")

NOT_REFUSED = {
    "B06": "Kafka stores the batch, and consumers get offsets behind its end",
    "F01": "its bytes are in no request: test_rules",
    "F14": "the scene's broker offers less than Kafka: test_rules",
    "G05": "Kafka does not read the metadata of members",
    "S01": "on the listener with SASL: test_rules",
    "S02": "on the listener with SASL: test_rules",
    "V06": "on the listener with SASL: test_rules",
}
"""Rules of which Kafka does not prove so that they are errors, and why they are."""


def _is_error(rule: str, scene: Scene) -> bool:
    return any(
        each.rule.id == rule and each.side is Side.CLIENT and each.severity is Severity.ERROR
        for each in findings(scene.judge())
    )


@pytest.fixture(scope="module", params=artifacts.LINES)
def broker(kafka: StartCluster, request: pytest.FixtureRequest) -> str:
    """Return the address of a broker with the topics of the scenes, and coordinators."""
    address = kafka(Shape(request.param)).bootstrap()
    asker = Line(address)
    with asker.socket:
        names = [{"name": name} for name in TOPICS]
        while True:
            metadata = asker.ask(METADATA, 9, topics=names, allow_auto_topic_creation=True)
            found = [
                asker.ask(FIND_COORDINATOR, 4, key_type=kind, coordinator_keys=["g"]).body
                for kind in (0, 1)
            ]
            codes = [each.error_code for each in metadata.body.topics]
            codes += [each.coordinators[0].error_code for each in found]
            codes += [part.error_code for each in metadata.body.topics for part in each.partitions]
            if not any(codes):
                return address


def test_errors_of_clients_are_refused(broker: str) -> None:
    errors = [
        (rule, case)
        for rule in BREAKS.keys() - NOT_REFUSED.keys()
        for case, _ in BREAKS[rule]
        if _is_error(rule, case())
    ]
    assert len(errors) > 30
    taken = [f"{rule} {case.__name__}" for rule, case in errors if not _meets_refusal(broker, case)]
    assert taken == []


def _meets_refusal(broker: str, case: Case) -> bool:
    """Return whether the broker refuses the last request of any client of a scene."""
    exchanges = [each for each in case().exchanges() if each.request is not None]
    return any(
        _is_refused(broker, [each for each in exchanges if each.connection == connection])
        for connection in {each.connection for each in exchanges}
    )


def _is_refused(broker: str, exchanges: list[Exchange]) -> bool:
    """Send the requests of a client; return whether the last was refused."""
    line, refused = Line(broker), False
    with line.socket:
        for each in exchanges:
            frame = each.request.frame
            if not expects_response(frame):
                line.socket.sendall(sized(frame))
                continue
            answer = line.send(sized(frame))
            if answer is None:
                return True
            response = decode_response(answer, each.api_key, each.api_version)
            facts = Facts()
            if response.body is not None and response.schema is not None:
                collect(response.schema, response.api_version or 0, response.body, facts)
            refused = bool(facts.errors)
    return refused
