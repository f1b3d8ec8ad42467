"""Faults are made where they should be, and nowhere else."""

from __future__ import annotations

import ast

import pytest

from tools.mutants.mutation_sites import faulty, sites_of

SOURCE = '''
LIMIT = 5

def f(a: int = 1) -> int:
    """Doc 2."""
    assert a == 3
    if a < 4 and b(a, c):
        d.append(a + 6)
    return True
'''


def test_each_kind_of_fault_in_the_order_of_the_text() -> None:
    assert [(site.line, site.kind) for site in sites_of(ast.parse(SOURCE))] == [
        (4, "returns at once"),
        (7, "negated"),
        (8, "dropped"),
        (7, "or for and"),
        (7, "compared otherwise"),
        (7, "one more"),
        (7, "arguments swapped"),
        (8, "- for +"),
        (8, "one more"),
        (9, "other value"),
    ]


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        (0, "def f(a: int=1) -> int:\n    return"),
        (1, "if not (a < 4 and b(a, c)):"),
        (2, "if a < 4 and b(a, c):\n        pass"),
        (3, "if a < 4 or b(a, c):"),
        (4, "if a <= 4 and b(a, c):"),
        (5, "if a < 5 and b(a, c):"),
        (6, "if a < 4 and b(c, a):"),
        (7, "d.append(a - 6)"),
        (8, "d.append(a + 7)"),
        (9, "return False"),
    ],
)
def test_a_fault_changes_one_place(number: int, changed: str) -> None:
    tree, _ = faulty(SOURCE, number)
    assert changed in ast.unparse(tree)
    assert len(sites_of(ast.parse(SOURCE))) == 10


def test_compiled_functions_have_no_faults() -> None:
    assert sites_of(ast.parse("@Kernel\ndef f(a):\n    return a + 1\n")) == []


def test_declared_functions_have_no_faults() -> None:
    assert (
        sites_of(ast.parse('class P(Protocol):\n    def f(self) -> int:\n        """Doc."""\n'))
        == []
    )


def test_faults_without_an_effect_are_left_out() -> None:
    text = "def f(a, b):\n    return g(max(a, b), h(a, a), strict=True)\n"
    kinds = [site.kind for site in sites_of(ast.parse(text))]
    assert kinds == ["returns at once", "arguments swapped"]  # those of g
