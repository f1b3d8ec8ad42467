"""
Completion in bash, zsh and fish: their scripts, and what they offer.

The script of a shell calls the program with the words so far, the last one perhaps unfinished, and
with its own name in a variable. It completes files where the program has nothing to offer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dissector.cli.parsing.command_line import LONG, SHORT, named_options
from dissector.cli.parsing.command_table import CommandTable
from dissector.cli.parsing.declarations import Command, Option, value_types
from dissector.cli.parsing.help_text import paragraphs
from dissector.errors import DissectorError, UsageError

_BASH = """\
_kafkashark_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(_KAFKASHARK_COMPLETE=bash "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _kafkashark_completion kafkashark
"""
_ZSH = """\
#compdef kafkashark
_kafkashark_completion() {
    local -a offered
    offered=("${(@f)$(_KAFKASHARK_COMPLETE=zsh $words[1] "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n $offered[1] ]]; then
        _describe -V kafkashark offered -U
    else
        _files
    fi
}
if [[ $funcstack[1] == _kafkashark ]]; then
    _kafkashark_completion "$@"
else
    compdef _kafkashark_completion kafkashark
fi
"""
_FISH = """\
function __kafkashark_complete
    set -l before (commandline -opc)
    set -l now (commandline -ct)
    set -l offered (env _KAFKASHARK_COMPLETE=fish $before[1] $before[2..-1] "$now" 2>/dev/null)
    if test (count $offered) -gt 0
        printf '%s\\n' $offered
    else
        __fish_complete_path "$now"
    end
end
complete -c kafkashark -f -a '(__kafkashark_complete)'
"""


class Shell(NamedTuple):
    """
    A shell.

    Attributes:
        script: What makes it complete.
        file: Where the script is installed, below the home directory.
        settings: The file that loads it; empty if the shell finds it by its place.
        loading: The line of that file.
    """

    script: str
    file: str
    settings: str = ""
    loading: str = ""


SHELLS: Mapping[str, Shell] = {
    "bash": Shell(
        _BASH,
        ".bash_completions/kafkashark.sh",
        ".bashrc",
        "source ~/.bash_completions/kafkashark.sh",
    ),
    "zsh": Shell(
        _ZSH,
        ".zfunc/_kafkashark",
        ".zshrc",
        "fpath+=~/.zfunc; autoload -Uz compinit; compinit",
    ),
    "fish": Shell(_FISH, ".config/fish/completions/kafkashark.fish"),
}


class Offer(NamedTuple):
    """A completion: the whole word, and its meaning."""

    word: str
    meaning: str = ""


def show_script(command: Command) -> None:
    """Print the script for the current shell."""
    print(SHELLS[current_shell()].script, end="")


def install_script(command: Command) -> None:
    """Install the script for the current shell."""
    name = current_shell()
    shell = SHELLS[name]
    file = Path.home() / shell.file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(shell.script)
    settings = Path.home() / shell.settings
    before = settings.read_text() if shell.settings and settings.is_file() else ""
    if shell.settings and shell.loading not in before.splitlines():
        line_end = "\n" if before and not before.endswith("\n") else ""
        with settings.open("a") as opened:
            opened.write(f"{line_end}{shell.loading}\n")
    print(f"{name} completion is installed in {file}; it works in new shells")


def current_shell() -> str:
    """
    Return the shell that called the program, or else the user's.

    Raises:
        UsageError: It has no completion.
    """
    import subprocess  # loaded here only: a shell that completes must not wait for it

    parent = ("ps", "-o", "comm=", "-p", str(os.getppid()))
    try:
        called_by = subprocess.run(parent, capture_output=True, text=True, check=False).stdout
    except OSError:
        called_by = ""
    named = (called_by.strip().lstrip("-"), os.environ.get("SHELL", ""))
    found = next((name for each in named if (name := Path(each).name) in SHELLS), None)
    if found is None:
        raise UsageError(f"completion exists for {', '.join(SHELLS)}: set SHELL to one of them")
    return found


def complete(shell: str, words: Sequence[str], table: CommandTable) -> None:
    """Print the completions of a command line's last word, in the form of a shell."""
    # bash takes `--format=csv` for three words.
    words = [each for each in words if each != "="] + [""] * (words[-1:] == ["="])
    try:
        offers = list(_offers(words, table, described=shell != "bash"))
    except DissectorError:  # a command that does not exist, or a filter that is not finished
        return
    for word, meaning in offers:
        match shell:
            case "zsh":
                print(word.replace("\\", "\\\\").replace(":", "\\:") + f":{meaning}")
            case "fish":
                print(f"{word}\t{meaning}")
            case _:
                print(word)


def _offers(words: Sequence[str], table: CommandTable, *, described: bool) -> Iterator[Offer]:
    *before, typed = [_unquoted(each) for each in words] or [""]
    if before:
        yield from command_offers(table.find(before[0]), before[1:], typed)
    elif described:
        found = (Offer(each.name, _brief(each.help)) for each in table.all())
        yield from (each for each in found if each.word.startswith(typed))
    else:
        yield from (Offer(name) for name in table.names() if name.startswith(typed))


def command_offers(command: Command, before: Sequence[str], typed: str) -> Iterator[Offer]:
    """
    Yield completions of a word of a command.

    Args:
        command: The command.
        before: The words between its name and the word.
        typed: The word so far.
    """
    declared = command.options.declared()
    named = named_options(declared, value_types(command.options))
    awaited, arguments, left = None, 0, iter(before)
    for word in left:
        if word in named:
            awaited, count = named[word]
            skipped = sum(1 for _ in zip(range(count), left, strict=False))
            awaited = awaited if skipped < count else None
        else:
            arguments += not word.startswith(SHORT)
    name, equals, value = typed.partition("=")
    if awaited is not None:
        yield from map(Offer, _values(command, awaited, typed, before))
    elif equals and name in named and name.startswith(LONG):
        values = _values(command, named[name][0], value, before)
        yield from (Offer(f"{name}={each}") for each in values)
    elif typed.startswith(SHORT):
        for each, (found, _) in named.items():
            if each.startswith(typed):
                yield Offer(each, _brief(found.help))
    else:
        positions = [each for each in declared.values() if not each.names]
        for position in positions[arguments : arguments + 1]:
            yield from map(Offer, _values(command, position, typed, before))


def _values(command: Command, declared: Option, typed: str, before: Sequence[str]) -> Iterable[str]:
    if declared.complete is not None:
        return declared.complete(command.name, typed, before)
    return [each for each in declared.choices if each.startswith(typed)]


def _unquoted(word: str) -> str:
    """Return a word without its quotes; the one at the end may still be missing."""
    if word[:1] in ("'", '"'):
        return word[1:].removesuffix(word[0])
    return word


def _brief(text: str) -> str:
    """Return the first sentence of a text, in one line."""
    return next(paragraphs(text), "").partition(". ")[0].removesuffix(".")
