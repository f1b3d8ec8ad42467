"""Command-line options for what reports show of records."""

from __future__ import annotations

from dissector.cli.parsing.declarations import Options, option
from dissector.errors import UsageError


class RecordOptions(Options):
    """What reports show of records."""

    show_payloads: bool = option(
        "--show-payloads",
        default=False,
        help="Show keys, values and headers of records in the report.",
    )
    masks: tuple[str, ...] = option(
        "--mask",
        setting="shared",
        default=(),
        metavar="value.FIELD",
        help="Hide a field of values or keys (value.card, key.id), or a header (header.NAME). The "
        "report shows records only as bytes, so --show-payloads is refused. May be given more than "
        "once.",
    )

    @property
    def shows_payloads(self) -> bool:
        """
        Whether keys, values and headers are shown.

        Raises:
            UsageError: A mask is not a path, or what it hides is to be shown too.
        """
        if self.masks:
            from dissector.values.value_masks import ValueMasks

            ValueMasks(self.masks)
            if self.show_payloads:
                raise UsageError("--mask and --show-payloads exclude each other")
        return self.show_payloads
