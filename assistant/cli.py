"""The command `kafkashark mcp`."""

from __future__ import annotations

from importlib.util import find_spec

from dissector.cli.parsing.declarations import REQUIRED, Options, option
from dissector.errors import UsageError
from dissector.installation import extra_needed


class McpOptions(Options):
    """The options of `mcp`."""

    folder: str = option(
        default=REQUIRED,
        metavar="DIR",
        help="The folder whose captures, request logs and key logs the assistant may read, with "
        "all below it.",
    )


def mcp(given: McpOptions) -> None:
    """Answer an assistant's questions about captures: a server of the Model Context Protocol.

    It speaks JSON-RPC on stdin and stdout, and an assistant starts it. All tools read only, from
    the folder only; secrets are masked, and no answer is longer than 20 KB.
    """
    if find_spec("mcp") is None:
        raise UsageError(extra_needed("mcp", "mcp"))
    from assistant.capture_folder import CaptureFolder

    folder = CaptureFolder(given.folder)
    from assistant.mcp_server import mcp_server

    mcp_server(folder).run("stdio")
