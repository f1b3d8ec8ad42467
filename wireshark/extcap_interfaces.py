"""
The interfaces that Wireshark shows, and what they are asked for, in its extcap sentences.

Source: https://www.wireshark.org/docs/man-pages/extcap.html, and chapter 8.2 of
https://www.wireshark.org/docs/wsdg_html_chunked/ChCaptureExtcap.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

_HELP = "https://kafkashark.github.io/kafkashark/wireshark/"
_ETHERNET = 1
"""The link type of packets of ours. Source: https://www.tcpdump.org/linktypes.html"""


class Argument(NamedTuple):
    """
    A setting of an interface, an input in Wireshark's dialog.

    Attributes:
        name: The option that Wireshark passes.
        label: The text beside the input.
        kind: Wireshark's type: `string`, `fileselect`, `selector`, or `boolflag`, which has no
            value.
        help: The text of its tooltip.
        default: The value without one.
        is_required: Whether Wireshark asks for it before it starts.
        choices: The only values, of a selector.
    """

    name: str
    label: str
    kind: str
    help: str
    default: str = ""
    is_required: bool = False
    choices: tuple[str, ...] = ()


class Interface(NamedTuple):
    """An interface: its name, its title, and its settings."""

    name: str
    title: str
    arguments: tuple[Argument, ...]


LOG = Interface(
    "kafkalog",
    "Kafka request log",
    (
        Argument(
            "--log", "Request log", "fileselect", "kafka-request.log of a broker", is_required=True
        ),
        Argument(
            "--once", "Stop at the end of the file", "boolflag", "Do not wait for more", "false"
        ),
        Argument(
            "--timezone", "Zone of times without one", "string", "Europe/Berlin, +02:00", "UTC"
        ),
    ),
)

PROXY = Interface(
    "kafkaproxy",
    "Kafka proxy",
    (
        Argument("--to", "Cluster", "string", "HOST:PORT[,...] of brokers", is_required=True),
        Argument(
            "--listen", "Address for clients", "string", "HOST:PORT, for clients", "127.0.0.1:9092"
        ),
        Argument("--filter", "Only exchanges that pass", "string", "As -Y: api == Produce"),
        Argument("--tls", "TLS to the cluster", "boolflag", "Encrypt connections", "false"),
        Argument("--tls-ca", "Certificate authorities", "fileselect", "PEM; else the system's"),
        Argument(
            "--sasl",
            "Login at the cluster",
            "selector",
            "none: clients log in themselves",
            "none",
            choices=("none", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
        ),
        Argument("--sasl-user", "User", "string", "For PLAIN and SCRAM"),
        Argument(
            "--sasl-secret", "File with the secret", "fileselect", "Password or token, in a file"
        ),
    ),
)

INTERFACES: Mapping[str, Interface] = {each.name: each for each in (LOG, PROXY)}


def interface_sentences() -> Iterator[str]:
    """Yield the answer to `--extcap-interfaces`."""
    try:
        own = version("kafkashark")
    except PackageNotFoundError:
        own = "0"
    yield _sentence("extcap", version=own, help=_HELP, display="kafkashark")
    for each in INTERFACES.values():
        yield _sentence("interface", value=each.name, display=each.title)


def link_type_sentences(interface: Interface) -> Iterator[str]:
    """Yield the answer to `--extcap-dlts`."""
    yield _sentence("dlt", number=str(_ETHERNET), name="EN10MB", display="Ethernet")


def setting_sentences(interface: Interface) -> Iterator[str]:
    """Yield the answer to `--extcap-config`."""
    for number, each in enumerate(interface.arguments):
        more = {"default": each.default} if each.default and not each.choices else {}
        if each.is_required:
            more |= {"required": "true"}
        if each.kind == "fileselect":
            more |= {"mustexist": "true"}
        yield _sentence(
            "arg",
            number=str(number),
            call=each.name,
            display=each.label,
            type=each.kind,
            tooltip=each.help,
            **more,
        )
    for number, each in enumerate(interface.arguments):
        for choice in each.choices:
            is_default = "true" if choice == each.default else "false"
            yield _sentence(
                "value", arg=str(number), value=choice, display=choice, default=is_default
            )


def _sentence(word: str, **parts: str) -> str:
    return f"{word} " + "".join(f"{{{name}={value}}}" for name, value in parts.items())
