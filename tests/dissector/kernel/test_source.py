"""What a kernel is made of, and what it may not be made of."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from dissector.kernel.source import fingerprint, is_device_function, referenced_globals
from tests.dissector.kernel import kernels


def changed(function: Callable[..., Any], **values: Any) -> Any:
    """Return a function whose module holds other values."""
    assert isinstance(function, FunctionType)
    return FunctionType(function.__code__, function.__globals__ | values, function.__name__)


def test_names() -> None:
    assert referenced_globals(kernels.total) == {"scaled": kernels.scaled}
    assert referenced_globals(kernels.scaled) == {"FACTOR": 31}
    assert referenced_globals(kernels.named) == {"RED": 7, "SOME": (2, 3, 5)}
    assert type(referenced_globals(kernels.named)["RED"]) is int
    assert referenced_globals(kernels.even) == {"odd": kernels.odd}


def test_parts_are_marked() -> None:
    assert is_device_function(kernels.scaled)
    assert not is_device_function(kernels.total)
    assert not is_device_function([])


def test_a_description_stays_the_same() -> None:
    assert fingerprint(kernels.total) == fingerprint(changed(kernels.total))
    assert " at 0x" not in fingerprint(kernels.total)


def test_a_description_tells_constants() -> None:
    assert fingerprint(kernels.named) != fingerprint(changed(kernels.named, RED=8))
    assert fingerprint(kernels.named) != fingerprint(changed(kernels.named, SOME=(2, 3, 6)))


def test_a_description_tells_parts_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(kernels.total)
    monkeypatch.setattr(kernels, "FACTOR", 32)
    assert fingerprint(kernels.total) != before


def test_a_description_tells_code_and_not_what_is_said_of_it() -> None:
    def twin(source: str) -> str:
        made: dict[str, Any] = {}
        exec(source, made)
        return fingerprint(made["kernel"])

    one = twin("def kernel(a):\n    return a + 1")
    assert twin('def kernel(a):\n    "Words."\n\n    return a + 1').count("\n") == one.count("\n")
    assert twin("def kernel(a):\n\n    return a + 1") == one
    assert twin("def kernel(a):\n    return a + 2") != one
    assert twin("def kernel(a):\n    return a - 1") != one
    assert twin("def kernel(a, b=1):\n    return a + 1") != one


def test_parts_that_call_one_another() -> None:
    assert "odd" in fingerprint(kernels.recursive)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (kernels.texts, "may use integers and device functions, not TEXT"),
        (kernels.not_a_part, "calls total, which is no device function"),
        (changed(kernels.named, RED=None), "not RED"),
        (changed(kernels.named, RED=1.5), "not RED"),
    ],
)
def test_other_names_are_refused(function: Callable[..., Any], why: str) -> None:
    with pytest.raises(TypeError, match=why):
        referenced_globals(function)


def test_variables_of_another_function_are_refused() -> None:
    outer = 3

    def kernel() -> int:
        return outer

    with pytest.raises(TypeError, match="of another function"):
        fingerprint(kernel)
