"""Options of commands that connect to a cluster: the settings that they give, and their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.security_options import TargetOptions, UpstreamOptions, tell, tell_once
from dissector.errors import UsageError


def test_the_options_become_the_settings_of_connections(tmp_path: Path) -> None:
    (secret := tmp_path / "secret").write_text("hunter2\n")
    given = TargetOptions(
        tls=True,
        sasl="SCRAM-SHA-256",
        sasl_user="ann",
        sasl_secret=secret,
        also=("10.0.0.7:9093",),
        follow_advertised=True,
    )
    security = given.security()
    assert security.tls is not None
    assert (security.mechanism, security.username, security.password) == (
        "SCRAM-SHA-256",
        "ann",
        "hunter2",
    )
    assert (security.also, security.follow_advertised) == (("10.0.0.7:9093",), True)
    assert not security.allow_plaintext_password


def test_without_options_connections_are_plain_and_go_nowhere_else() -> None:
    security = TargetOptions().security()
    assert (security.tls, security.mechanism, security.also) == (None, "", ())
    assert not security.follow_advertised


def test_names_of_options_in_messages_have_their_prefix() -> None:
    assert UpstreamOptions().security().option_prefix == "upstream-"
    assert "--upstream-sasl-user" in {each.names[0] for each in UpstreamOptions.declared().values()}


@pytest.mark.parametrize(("sasl", "expected"), [("NTLM", "not one of"), ("PLAIN", "a secret")])
def test_contradictions_are_errors_of_usage(
    sasl: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAFKASHARK_PASSWORD", raising=False)
    with pytest.raises(UsageError, match=expected):
        TargetOptions(sasl=sasl).security()


def test_messages_about_hosts_are_escaped_and_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    told = tell_once()
    told("broker \x1b[31m1")
    told("broker \x1b[31m1")
    tell("broker 2")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "\x1b" not in lines[0]
    assert lines[1] == "kafkashark: broker 2"
