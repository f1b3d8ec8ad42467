"""Options of several commands: declared once, and the same everywhere."""

from __future__ import annotations

from collections import defaultdict

from dissector.cli.app import COMMANDS
from dissector.cli.parsing.command_table import CommandTable
from dissector.cli.parsing.declarations import Option

ALL = CommandTable(COMMANDS).all()

OF_ONE_NAME = {
    "-T": "each command has its formats",
    "--to": "the target of a replay; a release",
    "--keep": "packets of a live capture; kinds of names",
    "--limit": "rows; requests of a replay",
    "--records": "records that are followed; exchanges of a report that are decoded",
    "--clients": "tables of stats; the side that is upgraded",
    "--fail-on": "differences of a replay; severities of rules; ranks of advice",
    "--ignore": "differences of a replay; rules; advices",
    "--select": "rules; advices",
    "--list": "rules; advices",
    "--explain": "a rule; an advice",
    "--timeout": "of a replay, and of a probe",
    "--interval": "tables of stats; the lag of groups over time; exports of figures",
    "--otlp": "spans; figures",
    "--conform": "exchanges of a report; the traffic of serve",
    "--tls-certificate": "of a client; of the listeners of serve",
    "--tls-key": "of a client; of the listeners of serve",
    "--tls-ca": "of a client; of the listeners of serve",
    "--sasl-secret": "of a client; of the clients of serve",
    "--format": "as -T",
    "-o": "rows; files beside the printed report; a recording, which must be named",
    "--output": "rows; a recording, which must be named",
    "--mask": "fields of decoded values; of replay, which shows records only as bytes",
    "--listen": "of captured brokers; of a cluster that is recorded; of figures",
}
"""Names with a meaning of their own in some commands."""


def test_an_option_is_declared_once() -> None:
    by_name: dict[str, set[Option]] = defaultdict(set)
    for command in ALL:
        for each in command.options.declared().values():
            for name in each.names:
                by_name[name].add(each)
    assert {name for name, found in by_name.items() if len(found) > 1} == OF_ONE_NAME.keys()


def test_a_declaration_has_one_attribute() -> None:
    attributes: dict[Option, set[str]] = defaultdict(set)
    for command in ALL:
        for attribute, each in command.options.declared().items():
            attributes[each].add(attribute)
    assert [found for found in attributes.values() if len(found) > 1] == []


def test_names_of_one_command_differ() -> None:
    for command in ALL:
        names = [name for each in command.options.declared().values() for name in each.names]
        assert len(names) == len(set(names)), command.name


def test_each_option_is_explained() -> None:
    """By a sentence, and a word for its value."""
    for command in ALL:
        for name, each in command.options.declared().items():
            assert each.help.endswith(".") or each.choices, (command.name, name)
            is_flag = isinstance(each.default, bool)
            assert is_flag != bool(each.metavar), (command.name, name)
