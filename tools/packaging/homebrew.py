"""
Writes a formula of Homebrew for a tap: the source distribution, and its requirements with hashes.

    uv pip compile --generate-hashes --extra mock --extra browse pyproject.toml > requirements.txt
    python -m tools.packaging.homebrew kafkashark-1.2.3.tar.gz requirements.txt > kafkashark.rb
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

PYTHON = "3.13"

FORMULA = """\
# Written by tools.packaging.homebrew of {home}.
class Kafkashark < Formula
  desc "Wireshark for Apache Kafka"
  homepage "{home}"
  url "{home}/releases/download/v{version}/{name}"
  sha256 "{sha256}"
  license "Apache-2.0"

  depends_on "python@{python}"

  # Wheels with these hashes, and no others.
  REQUIREMENTS = <<~TEXT
{requirements}
  TEXT

  def install
    system "python{python}", "-m", "venv", libexec
    (buildpath/"locked.txt").write REQUIREMENTS
    pip = libexec/"bin/pip"
    system pip, "install", "--require-hashes", "--only-binary", ":all:", "-r", "locked.txt"
    system pip, "install", "--no-deps", buildpath
    bin.install_symlink libexec/"bin/kafkashark"
    man1.install "man/kafkashark.1"
  end

  test do
    assert_match "Response times and errors", shell_output("#{{bin}}/kafkashark demo")
  end
end
"""

HOME = "https://github.com/kafkashark/kafkashark"

_REQUIREMENT = re.compile(
    r"^(?:[a-z0-9][\w.-]*==\S+(?: ; [^\\#]+)?|    --hash=sha256:[0-9a-f]{64})( \\)?$"
)


def formula(name: str, content: bytes, requirements: str) -> str:
    """
    Return the formula.

    Args:
        name: The file of the source distribution.
        content: Its bytes.
        requirements: What it needs, as `uv pip compile --generate-hashes` prints it.
    """
    lines = [each for each in requirements.splitlines() if each and "#" not in each]
    for line in lines:
        if not _REQUIREMENT.match(line):
            raise SystemExit(f"tools.packaging.homebrew: no requirement with a hash: {line}")
    escaped = [line.replace("\\", "\\\\") for line in lines]
    return FORMULA.format(
        home=HOME,
        name=name,
        version=name.removesuffix(".tar.gz").rpartition("-")[2],
        sha256=hashlib.sha256(content).hexdigest(),
        python=PYTHON,
        requirements="\n".join(f"    {line}" for line in escaped),
    )


def main(arguments: list[str]) -> None:
    """Print the formula."""
    if len(arguments) != 2:
        raise SystemExit("python -m tools.packaging.homebrew SDIST REQUIREMENTS")
    sdist, requirements = map(Path, arguments)
    print(formula(sdist.name, sdist.read_bytes(), requirements.read_text()), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
