"""
Parser for usual command lines without Typer, which takes an eighth of a small capture's time.

Everything else is left to Typer: help, errors, joined short options. Tests hold the values of both
equal. The measurement: docs/speed.md, Start.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from dissector.cli.parsing.parameters import Argument, Parameter

_TYPES = (bool, str, int, float, Path)


class _NotPlainError(Exception):
    """Typer must parse this command line, or report its errors."""


class _Target(NamedTuple):
    """A parameter of a command's function."""

    name: str
    declared: Parameter
    type: type
    is_list: bool
    default: Any

    @property
    def is_flag(self) -> bool:
        return self.type is bool


def parse(command: Callable[..., Any], words: Sequence[str]) -> dict[str, Any] | None:
    """
    Return the arguments for the function of a command; None if Typer must parse the words.

    Callbacks of parameters are called, if all words are plain.
    """
    try:
        parameters = inspect.signature(command, eval_str=True).parameters.values()
        targets = [_target(each) for each in parameters]
        texts = _texts(words, targets)
        values = {each.name: _value(each, texts.get(each.name)) for each in targets}
    except _NotPlainError:
        return None
    for each in targets:
        callback = each.declared.settings.get("callback")
        # An eager option acts only if it is given; that is not plain.
        if callback is not None and not each.declared.settings.get("is_eager"):
            values[each.name] = callback(values[each.name])
    return values


def _target(parameter: inspect.Parameter) -> _Target:
    base, *metadata = get_args(parameter.annotation) or (None,)
    declared = next((each for each in metadata if isinstance(each, Parameter)), None)
    if declared is None:
        raise _NotPlainError
    plain = next((each for each in get_args(base) if each is not NoneType), base)
    is_list = list in (get_origin(base), get_origin(plain))
    value_type = get_args(plain)[0] if get_args(plain) else plain
    is_positive_flag = parameter.default is False and bool(declared.names)
    takes_words = len(declared.settings.get("metavar", "").split()) > 1 and declared.names
    if value_type not in _TYPES or (value_type is bool and not is_positive_flag) or takes_words:
        raise _NotPlainError
    return _Target(parameter.name, declared, value_type, is_list, parameter.default)


def _texts(words: Iterable[str], targets: Sequence[_Target]) -> dict[str, list[str]]:
    """Return the words for each parameter; flags have their own name as text."""
    options = {name: each for each in targets for name in each.declared.names}
    texts: dict[str, list[str]] = {}
    positional: list[str] = []
    left = iter(words)
    for word in left:
        if word == "-" or not word.startswith("-"):
            positional.append(word)
        else:
            target, text = _option(word, left, options)
            texts.setdefault(target.name, []).append(text)
    for target in targets:
        if isinstance(target.declared, Argument) and positional:
            count = len(positional) if target.is_list else 1
            texts[target.name] = positional[:count]
            del positional[:count]
    if positional:
        raise _NotPlainError
    return texts


def _option(word: str, left: Iterator[str], options: dict[str, _Target]) -> tuple[_Target, str]:
    """Return the parameter of an option, and its text, perhaps the next word."""
    name, equals, text = word.partition("=") if word.startswith("--") else (word, "", "")
    target = options.get(name)
    if target is None or target.declared.settings.get("is_eager"):
        raise _NotPlainError
    if target.is_flag:
        if equals:
            raise _NotPlainError
        return target, name
    if equals:
        return target, text
    following = next(left, None)
    if following is None:
        raise _NotPlainError
    return target, following


def _value(target: _Target, texts: list[str] | None) -> Any:
    if texts is None:
        if target.default is inspect.Parameter.empty:
            raise _NotPlainError
        return target.default
    if target.is_list:
        return [_converted(target, each) for each in texts]
    return _converted(target, texts[-1])


def _converted(target: _Target, text: str) -> Any:
    if target.is_flag:
        return True
    try:
        value = target.type(text)
    except ValueError:
        raise _NotPlainError from None
    least, most = (target.declared.settings.get(name) for name in ("min", "max"))
    if (least is not None and value < least) or (most is not None and value > most):
        raise _NotPlainError
    return value
