"""Options of the commands that may decode keys and values of records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from dissector.cli.parsing.declarations import Options, option
from dissector.errors import UsageError
from dissector.protocol.embedded.secrecy.hidden_records import hide_records
from dissector.values.source_options import (
    PASSWORD_VARIABLE,
    READS_FORMAT,
    READS_VALUES,
    VALUES_VARIABLE,
)

if TYPE_CHECKING:
    from dissector.values.value_settings import ValueSettings


def _hide_records(masks: tuple[str, ...]) -> None:
    """Hide the bytes of records if fields of values are hidden."""
    hide_records(bool(masks))


class ValueSourceOptions(Options):
    """Where the schemas of keys and values are."""

    heading: ClassVar[str] = "Values"

    values: tuple[str, ...] = option(
        "--values",
        default=(),
        metavar="SOURCE",
        help="Schemas of keys and values, besides those in the capture: a folder of .avsc, "
        ".proto, .desc and .json files, a file, a dump of a registry, or https://HOST[:PORT] of "
        f"one. May be given more than once; by default those of ${VALUES_VARIABLE}.",
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
    values_user: str = option(
        "--values-user",
        default="",
        metavar="NAME[:PASSWORD]",
        help="Login at the registries of --values; without a password that of "
        f"${PASSWORD_VARIABLE}.",
    )
    no_values: bool = option(
        "--no-values", default=False, help="Decode no keys and values, whatever the variable says."
    )

    @property
    def value_settings(self) -> ValueSettings:
        """The options, and the environment variable."""
        from dissector.values.value_settings import ValueSettings

        given = ValueSettings(self.values, self.value_formats, self.no_values, self.values_user)
        return given.with_variable()


class ValueOptions(ValueSourceOptions):
    """How keys and values are decoded, and shown."""

    heading: ClassVar[str] = "Values"

    masks: tuple[str, ...] = option(
        "--mask",
        default=(),
        metavar="value.FIELD",
        callback=_hide_records,
        help="Hide a field of values or keys (value.card, key.id), and the bytes of all records: "
        "keys and values are shown only decoded. May be given more than once.",
    )

    @property
    def value_settings(self) -> ValueSettings:
        """
        The options, and the environment variable.

        Raises:
            UsageError: A mask is not a path, or secrets are to be shown too.
        """
        if self.masks:
            from dissector.values.value_masks import ValueMasks

            ValueMasks(self.masks)
            if getattr(self, "show_secrets", False):
                raise UsageError("--mask and --show-secrets exclude each other")
        return replace(super().value_settings, masks=self.masks)
