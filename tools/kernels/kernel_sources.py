"""Sources of kernels: syntax trees, functions, and constants of modules."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

KERNEL, DEVICE_FUNCTION = "Kernel", "device_function"
"""Decorators of compiled functions."""

Constant = int | tuple[int, ...]


@dataclass(frozen=True)
class Function:
    """A compiled function: its module and syntax tree."""

    module: Module
    tree: ast.FunctionDef

    @property
    def is_kernel(self) -> bool:
        """Whether the function is called from Python."""
        return KERNEL in _decorators(self.tree)

    @property
    def place(self) -> str:
        """Module and name."""
        return f"{self.module.name}.{self.tree.name}"


@dataclass(frozen=True)
class Module:
    """
    A module of the project.

    Attributes:
        name: Its full name.
        path: Its file.
    """

    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.path.read_text(encoding="utf-8"), str(self.path))

    @cached_property
    def kernels(self) -> list[Function]:
        """Its kernels, in order."""
        found = (self.lookup(each.name) for each in self.tree.body if _is_compiled(each))
        return [each for each in found if isinstance(each, Function) and each.is_kernel]

    def lookup(self, name: str) -> Function | Constant:
        """
        Return the value of a name in the module: a function, an integer, or integers.

        The name may be that of a class or module with constants, a dot, and that of one of these.

        Raises:
            KeyError: The name has another value.
        """
        owner, _, member = name.partition(".")
        value = self._value(owner)
        if member:
            value = getattr(value, member, None)
        if isinstance(value, Function):
            return value
        if isinstance(value, frozenset | set):
            value = tuple(sorted(value))
        if isinstance(value, int):
            return int(value)  # also for members of enumerations
        if isinstance(value, tuple) and all(isinstance(each, int) for each in value):
            return tuple(map(int, value))
        raise KeyError(f"{self.name}: {name} is neither a number nor a function to compile")

    def find_class(self, name: str) -> tuple[Module, ast.ClassDef] | None:
        """Return a class of the project with its module; None without one."""
        found = self._definitions.get(name)
        if isinstance(found, ast.ClassDef):
            return self, found
        if isinstance(found, ast.ImportFrom):
            original = next(a.name for a in found.names if (a.asname or a.name) == name)
            source = module(found.module or "")
            return source.find_class(original) if source is not None else None
        return None

    def _value(self, name: str) -> Any:
        found = self._definitions.get(name)
        if found is None:
            if not hasattr(builtins, name):
                raise KeyError(f"{self.name}: {name!r} is not defined")
            return getattr(builtins, name)
        if isinstance(found, ast.FunctionDef):
            return Function(self, found) if _is_compiled(found) else self._executed(found, name)
        if isinstance(found, ast.ClassDef):
            return self._executed(found, name)
        if isinstance(found, ast.ImportFrom):
            original = next(a.name for a in found.names if (a.asname or a.name) == name)
            inside = module(f"{found.module}.{original}")
            if inside is not None:
                return _Namespace(inside)
            source = module(found.module or "")
            if source is not None:
                return source._value(original)
            return getattr(import_module(found.module or ""), original)
        if isinstance(found, ast.Import):
            return import_module(name)
        return self._executed(found, name)

    @cached_property
    def _cache(self) -> dict[str, Any]:
        return {}

    def _executed(self, statement: ast.stmt, name: str) -> Any:
        """Return the value of a name by executing its statement."""
        if name not in self._cache:
            space = {
                each.id: self._value(each.id)
                for each in ast.walk(statement)
                if isinstance(each, ast.Name)
                and isinstance(each.ctx, ast.Load)
                and self._definitions.get(each.id) not in (None, statement)
            }
            code = ast.Module([ast.parse("from __future__ import annotations").body[0], statement])
            code.type_ignores = []
            exec(compile(ast.fix_missing_locations(code), str(self.path), "exec"), space)
            self._cache[name] = space[name]
        return self._cache[name]

    @cached_property
    def _definitions(self) -> dict[str, ast.stmt]:
        """The statement that defines each name of the module."""
        found: dict[str, ast.stmt] = {}
        for each in self.tree.body:
            for name in _defined_names(each):
                found[name] = each
        return found


@dataclass(frozen=True)
class _Namespace:
    """Stands in for an imported module of the project while a constant is computed."""

    module: Module

    def __getattr__(self, name: str) -> Any:
        return self.module._value(name)


_modules: dict[str, Module | None] = {}
"""Name -> module, of all modules of the project that were asked for since `forget`."""


def forget() -> None:
    """Forget all modules and what is known of them, so that `consulted` begins anew."""
    _modules.clear()


def consulted() -> list[Path]:
    """Return the files of the modules asked for since `forget`, sorted, relative to the root."""
    found = (each.path.relative_to(ROOT) for each in _modules.values() if each is not None)
    return sorted(found)


def module(name: str) -> Module | None:
    """Return a module of the project; None if it does not exist."""
    if name not in _modules:
        _modules[name] = _found(name)
    return _modules[name]


def _found(name: str) -> Module | None:
    path = ROOT.joinpath(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return Module(name, file)
    return None


def modules_with_kernels(package: str) -> list[Module]:
    """Return the modules with kernels below a package."""
    found = []
    for file in sorted(ROOT.joinpath(*package.split(".")).rglob("*.py")):
        if f"@{KERNEL}\n" in file.read_text(encoding="utf-8"):
            each = module(".".join(file.relative_to(ROOT).with_suffix("").parts))
            assert each is not None
            found.append(each)
    return found


def _decorators(tree: ast.FunctionDef) -> list[str]:
    return [each.id for each in tree.decorator_list if isinstance(each, ast.Name)]


def _is_compiled(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef) and not {KERNEL, DEVICE_FUNCTION}.isdisjoint(
        _decorators(statement)
    )


def _defined_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [each.asname or each.name for each in statement.names]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [n.id for each in targets for n in ast.walk(each) if isinstance(n, ast.Name)]
    return []
