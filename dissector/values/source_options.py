"""How a user names sources of schemas; of these, commands load nothing else."""

from __future__ import annotations

VALUES_VARIABLE = "KAFKASHARK_VALUES"
"""Environment variable with sources, separated as in PATH."""

PASSWORD_VARIABLE = "KAFKASHARK_VALUES_PASSWORD"
"""Environment variable with the password of a user whom `--values-user` names without one."""

SOURCE_FILES = ("*.avsc", "*.json", "*.proto", "*.desc", "*.protoset")
"""The files of a folder that are read."""


def format_file(text: str) -> str:
    """Return the file in the format of a topic, `orders=avro:order.avsc`; empty without one."""
    return file_and_message(text.partition("=")[2].partition(":")[2])[0]


def file_and_message(text: str) -> tuple[str, str]:
    """Return the file and the message of `FILE[:MESSAGE]`, or `FILE#MESSAGE`, as in Protobuf."""
    file, _, message = text.rpartition("#" if "#" in text else ":")
    return (file, message) if file and "/" not in message else (text, "")
