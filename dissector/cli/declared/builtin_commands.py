"""The built-in commands: their options and help; what they do is loaded when they are run."""

from __future__ import annotations

from dissector.cli.declared.answer_options import (
    GroupOptions,
    SecretPlaceOptions,
    StatsOptions,
    UpgradeOptions,
    ValueUseOptions,
)
from dissector.cli.declared.file_options import ExportOptions, SchemaOptions
from dissector.cli.declared.row_options import (
    MessageOptions,
    PairOptions,
    RecordOptions,
    StreamOptions,
)


def dissect(given: MessageOptions) -> None:
    """Print a line for each message, in the order of the capture.

    -T parquet has a row for each field of each message.

    Live: kafkashark dissect -i eth0 -f 'tcp port 9092' -a duration:60
    """
    from dissector.cli.dissect import dissect

    dissect(given)


def pairs(given: PairOptions) -> None:
    """Print a row for each request with its response.

    Live: kafkashark pairs -i eth0 -f 'tcp port 9092' -w kept.pcapng
    """
    from dissector.cli.pairs import pairs

    pairs(given)


def streams(given: StreamOptions) -> None:
    """Print a row for each TCP connection: endpoints, traffic, losses, protocol and TLS.

    With -Y only the connections with an exchange that passes.

    Live, at the end: kafkashark streams -i eth0 -a duration:60
    """
    from dissector.cli.streams import streams

    streams(given)


def records(given: RecordOptions) -> None:
    """Print a row for each record that was produced or fetched.

    Live: kafkashark records -i eth0 -Y 'topic == orders'
    """
    from dissector.cli.records import records

    records(given)


def stats(given: StatsOptions) -> None:
    """Print response times and errors per API, client, topic, broker; and the capture's health.

    Options for tables replace these four: kafkashark stats a.pcap --by minute,api --clients

    Live, refreshed every two seconds: kafkashark stats -i eth0 --interval 2 --top 10
    """
    from dissector.cli.stats import stats

    stats(given)


def groups(given: GroupOptions) -> None:
    """Print each group at the end of the capture: its members, their partitions, offsets and lag.

    Offsets and members from before the capture are missing unless a message repeats them. Lag is
    the last high watermark in a Fetch response less the committed offset; empty where the capture
    lacks one of them. -Y selects messages of groups; its tests of time, such as frame.time_relative
    < 30, select the Fetch responses too, the others do not.
    Groups with one name are one group, whichever broker coordinates them. One of them: kafkashark
    groups a.pcap --group billing
    """
    from dissector.cli.answers.groups import groups

    groups(given)


def upgrade(given: UpgradeOptions) -> int:
    """Print the API versions in use that a release of Kafka removed or does not know.

    The verdict on each is `breaks`, or `negotiates` if the client requests the broker's versions
    and may choose another one. With --clients it is `breaks`, `unused` where no client of the
    capture sends such requests, or `unknown` without the broker's versions.

    Exit status 1 if a client breaks, or with --clients a broker is too old. For example:
    kafkashark upgrade a.pcap --to 4.4
    """
    from dissector.cli.answers.upgrade import upgrade

    return upgrade(given)


def schemas(given: ValueUseOptions) -> None:
    """Print which formats and schemas the keys and values of topics have.

    A row for each topic, key or value, and schema: who wrote and read it, since when, what was used
    before, and records that do not decode, as those of unknown ids. -Y selects records.
    """
    from dissector.cli.answers.schema_uses import schemas

    schemas(given)


def secrets(given: SecretPlaceOptions) -> int:
    """Print where captures hold secrets: passwords, tokens, keys; status 1 if any does.

    Each CAPTURE is read on its own: a line for each field with secrets, with its first packet. A
    hook of pre-commit that refuses such captures runs this.
    """
    from dissector.cli.answers.secrets_in_files import secrets

    return secrets(given)


def export(given: ExportOptions) -> None:
    """Write the packets of the exchanges that pass a filter to a pcapng file.

    Of each exchange its segments, their repetitions and acknowledgements, of its connection the
    handshake and the end. The same filter finds the same exchanges in the new file. With --redact
    it has no names and contents of the capture: to pass on.
    """
    from dissector.cli.export import export

    export(given)


def schema(given: SchemaOptions) -> None:
    """Print the declaration of an API at a version; of all APIs, their names and versions."""
    from dissector.cli.schema import schema

    schema(given)


BUILTIN = (
    *(dissect, pairs, streams, records, stats, groups, upgrade, schemas, secrets),
    *(export, schema),
)
