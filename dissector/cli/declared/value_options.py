"""Options of the commands that may decode keys and values of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dissector.cli.parsing.declarations import Options, option
from dissector.values.source_options import READS_FORMAT, READS_VALUES, VALUES_VARIABLE

if TYPE_CHECKING:
    from dissector.values.value_settings import ValueSettings


class ValueOptions(Options):
    """How keys and values are decoded."""

    heading: ClassVar[str] = "Values"

    values: tuple[str, ...] = option(
        "--values",
        default=(),
        metavar="SOURCE",
        help="Schemas of keys and values, besides those in the capture: a folder of .avsc, "
        ".proto, .desc and .json files, a file, or a dump of a registry. May be given more than "
        f"once; by default those of ${VALUES_VARIABLE}.",
        role=READS_VALUES,
    )
    value_formats: tuple[str, ...] = option(
        "--value-format",
        default=(),
        metavar="TOPIC=FORMAT",
        help="Format of the values of topics, such as orders=avro:order.avsc, "
        "orders=protobuf:order.proto:Order or logs-*=text; of keys: orders.key=json. May be given "
        "more than once.",
        role=READS_FORMAT,
    )
    no_values: bool = option(
        "--no-values", default=False, help="Decode no keys and values, whatever the variable says."
    )

    @property
    def value_settings(self) -> ValueSettings:
        """The options, and the environment variable."""
        from dissector.values.value_settings import ValueSettings

        return ValueSettings(self.values, self.value_formats, self.no_values).with_variable()
