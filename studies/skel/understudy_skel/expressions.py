"""Values of scalars: whole-number arithmetic over other scalars, the rank and the ranks.

An expression has numbers, + - * / % (), names of scalars (in braces where a name is not a plain
word: {mpsi+1}), skel_mpi_rank, skel_mpi_size, and for Cartesian decompositions grid(d, i) and
coordinate(d, i): the ranks along dimension i of the balanced grid with d dimensions, and where
this rank stands in it (dimension d-1 is the fastest); of_rank(n, n, ...) is a number for each
rank. Division cuts off, as in C.
"""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.errors import UnderstudyError
from understudy.model.scaling import primes
from understudy_skel.dialects import Dialect
from understudy_skel.escape import Text

RANK, RANKS = "skel_mpi_rank", "skel_mpi_size"
FUNCTIONS = ("grid", "coordinate", "of_rank")
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%"}
EXPECTED = (
    "expected numbers, names of scalars, skel_mpi_rank, skel_mpi_size, + - * / % ( ), grid(d, i), "
    "coordinate(d, i) or of_rank(n, ...)"
)
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """`names` are the scalars that it needs; the tree holds them as _0, _1, ..."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]

    def evaluate(self, values: Mapping[str, Integers], ranks: int) -> Integers:
        """Its value on every rank, int64[ranks]; `values` holds the same of the scalars."""
        value = _evaluate(self, self.tree, values, ranks)
        return np.broadcast_to(np.asarray(value, dtype=np.int64), (ranks,))

    def to_code(self, dialect: Dialect, name: Callable[[str], Text]) -> Text:
        """The same in a language; `name` gives the text of a scalar or of the rank there."""
        return _code(self, self.tree, dialect, name)


def parse(text: str) -> Expression:
    """The expression; a ValueError says what is wrong with it."""
    names: list[str] = []

    def hold(name: str) -> str:
        if name not in names:
            names.append(name)
        return f"_{names.index(name)}"

    def word(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        words = (RANK, RANKS, *FUNCTIONS)
        return name if not match.group(1) and name in words else hold(name.strip())

    plain = re.sub(r"\{([^{}]+)\}|([A-Za-z_][A-Za-z_0-9]*)", word, text)
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError(f"{text!r}: {EXPECTED}") from None
    for node in ast.walk(tree):
        if not _fits(node):
            raise ValueError(f"{text!r}: {EXPECTED}")
    return Expression(text=text, tree=tree, names=tuple(names))


def _fits(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
            return False
        if not all(isinstance(a, ast.Constant) and _fits(a) for a in node.args):
            return False
        function, numbers = _call(node)
        if function == "of_rank":
            return len(numbers) > 0
        return len(numbers) == 2 and 0 <= numbers[1] < numbers[0] <= 8
    if isinstance(node, ast.Constant):
        return type(node.value) is int and abs(node.value) < 2**63
    if isinstance(node, ast.BinOp):
        return type(node.op) in OPERATORS
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    return isinstance(node, (ast.Name, ast.Load, ast.USub, *OPERATORS))


def _evaluate(
    whole: Expression, node: ast.expr, values: Mapping[str, Integers], ranks: int
) -> Integers:
    if isinstance(node, ast.Constant):
        return np.asarray(node.value, dtype=np.int64)
    if isinstance(node, ast.Name):
        if node.id == RANK:
            return np.arange(ranks, dtype=np.int64)
        if node.id == RANKS:
            return np.asarray(ranks, dtype=np.int64)
        return values[whole.names[int(node.id[1:])]]
    if isinstance(node, ast.Call):
        return _function(whole, *_call(node), ranks)
    if isinstance(node, ast.UnaryOp):
        return -_evaluate(whole, node.operand, values, ranks)
    assert isinstance(node, ast.BinOp), "parse lets nothing else through"
    left = _evaluate(whole, node.left, values, ranks)
    right = _evaluate(whole, node.right, values, ranks)
    return _apply(whole, type(node.op), left, right)


def _apply(
    whole: Expression, operator: type[ast.AST], left: Integers, right: Integers
) -> Integers:
    if operator is ast.Add:
        return left + right
    if operator is ast.Sub:
        return left - right
    if operator is ast.Mult:
        return left * right
    if not np.all(right):
        raise ValueError(f"{whole.text!r} divides by 0")
    cut: Integers = np.sign(left) * np.sign(right) * (np.abs(left) // np.abs(right))
    return cut if operator is ast.Div else left - cut * right


def _call(node: ast.Call) -> tuple[str, list[int]]:
    assert isinstance(node.func, ast.Name), "parse lets nothing else through"
    return node.func.id, [int(str(a.value)) for a in node.args if isinstance(a, ast.Constant)]


def _function(whole: Expression, function: str, numbers: list[int], ranks: int) -> Integers:
    if function == "of_rank":
        if len(numbers) != ranks:
            raise ValueError(f"{whole.text[:40]!r}: {len(numbers)} numbers for {ranks} ranks")
        return np.asarray(numbers, dtype=np.int64)
    sides = grid(ranks, numbers[0])
    if function == "grid":
        return np.asarray(sides[numbers[1]], dtype=np.int64)
    return coordinate(sides, numbers[1])


def coordinate(sides: tuple[int, ...], index: int) -> Integers:
    """Where each rank stands along a dimension of a grid, int64[ranks]."""
    return np.asarray(np.indices(sides)[index].ravel(), dtype=np.int64)


def _code(whole: Expression, node: Any, dialect: Dialect, name: Callable[[str], Text]) -> Text:
    if isinstance(node, ast.Constant):
        return dialect.number(int(str(node.value)))
    if isinstance(node, ast.Name):
        return name(node.id if node.id in (RANK, RANKS) else whole.names[int(node.id[1:])])
    if isinstance(node, ast.Call):
        function, numbers = _call(node)
        if function == "of_rank":
            before = [name(RANK), dialect.number(len(numbers)), dialect.list_of(numbers)]
            return dialect.call("skeleton_of_rank", before, [])
        before = [name(RANKS)] if function == "grid" else [name(RANK), name(RANKS)]
        return dialect.call(f"skeleton_{function}", before, numbers)
    if isinstance(node, ast.UnaryOp):
        return dialect.negative(_code(whole, node.operand, dialect, name))
    left = _code(whole, node.left, dialect, name)
    right = _code(whole, node.right, dialect, name)
    left, right = (
        dialect.parenthesized(text) if isinstance(side, ast.BinOp) else text
        for text, side in ((left, node.left), (right, node.right))
    )
    return dialect.operation(left, OPERATORS[type(node.op)], right)


def grid(ranks: int, dimensions: int) -> tuple[int, ...]:
    """A balanced Cartesian grid of the ranks: prime factors, the largest first, each go to the
    side that is shortest so far; then the longest side is put first, as proxies/skeleton/arrays.c
    does it."""
    if ranks < 1 or dimensions < 1:
        raise UnderstudyError(f"no grid of {dimensions} dimensions has {ranks} ranks")
    sides = [1] * dimensions
    for factor in sorted(primes(ranks), reverse=True):
        sides[sides.index(min(sides))] *= factor
    return tuple(sorted(sides, reverse=True))
