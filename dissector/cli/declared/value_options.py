"""Options of the commands that may decode keys and values of records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dissector.cli.parsing.declarations import Options, option
from dissector.errors import UsageError
from dissector.file_roles import READS, Reads
from dissector.protocol.embedded.secrecy.hidden_records import hide_records
from dissector.values.source_options import (
    PASSWORD_VARIABLE,
    SOURCE_FILES,
    VALUES_VARIABLE,
    format_file,
)

if TYPE_CHECKING:
    from dissector.values.value_settings import ValueSettings


def _hide_records(masks: tuple[str, ...]) -> None:
    """Hide the bytes of records, and headers, if fields of values are hidden."""
    if masks:
        from dissector.values.value_masks import hidden_headers

        hide_records(True, hidden_headers(masks))
    else:
        hide_records(False)


def _imports_of(path: str) -> Iterable[str]:
    """Return the files that a `.proto` file imports; none if it can't be read."""
    if not path.endswith(".proto"):
        return ()
    from dissector.values.schemas.proto_files import imports_of

    return map(str, imports_of(Path(path)))


_READS_FORMAT = Reads(path_in=format_file, with_file=_imports_of)
_READS_VALUES = Reads(SOURCE_FILES, VALUES_VARIABLE, with_file=_imports_of)


class ValueSourceOptions(Options):
    """Where the schemas of keys and values are."""

    heading: ClassVar[str] = "Values"

    values: tuple[str, ...] = option(
        "--values",
        setting="shared",
        default=(),
        metavar="SOURCE",
        help="Schemas of keys and values, besides those in the capture: a folder of .avsc, "
        ".proto, .desc and .json files, a file, a dump of a registry, or https://HOST[:PORT] of "
        f"one. May be given more than once; by default those of ${VALUES_VARIABLE}.",
        role=_READS_VALUES,
    )
    value_formats: tuple[str, ...] = option(
        "--value-format",
        setting="shared",
        default=(),
        metavar="TOPIC=FORMAT",
        help="Format of the values of topics, such as orders=avro:order.avsc, "
        "orders=protobuf:order.proto:Order or logs-*=text; of keys: orders.key=json. May be given "
        "more than once.",
        role=_READS_FORMAT,
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

    scripts: tuple[str, ...] = option(
        "--script",
        default=(),
        metavar="FILE.py",
        help="Python with hooks of yours, by the names of functions: value and key decode records, "
        "rule is a rule of conform, advice one of advise, rewrite changes requests of replay, "
        "column_NAME is hook.NAME in filters and --columns. May be given more than once.",
        role=READS,
    )

    @property
    def value_settings(self) -> ValueSettings:
        """The options, and the environment variable."""
        from dissector.values.value_settings import ValueSettings

        given = ValueSettings(
            self.values,
            self.value_formats,
            self.no_values,
            self.values_user,
            scripts=self.scripts,
        )
        return given.with_variable()


class ValueOptions(ValueSourceOptions):
    """How keys and values are decoded, and shown."""

    heading: ClassVar[str] = "Values"

    masks: tuple[str, ...] = option(
        "--mask",
        setting="shared",
        default=(),
        metavar="value.FIELD",
        callback=_hide_records,
        help="Hide a field of values or keys (value.card, key.id), or a header (header.NAME), and "
        "the bytes of all records: keys and values are shown only decoded. May be given more than "
        "once.",
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
