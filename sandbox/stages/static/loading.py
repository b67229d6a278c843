"""The rule on code that runs when a server is loaded: imports, definitions and constants alone.

Constants are measured rather than evaluated: what is built of literals, operators and a few
constructors has a size that is known from the text, and that is bounded.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from sandbox.bundle.source import FunctionNode, ParsedSource

Found = Iterator[tuple[int, str]]
"""Line and detail of each place that breaks a rule."""
MAX_SIZE = 1 << 22
"""The largest constant, in characters and elements: as much as the source may have."""
MAX_BITS = 1 << 12
TEXT_FACTOR = 12
"""How much longer the text of a value can be than what is counted for the value."""

PLAIN_CALLS = frozenset(
    "bytes bytes.fromhex dict dict.fromkeys float frozenset int len list max min range set sorted "
    "str.maketrans tuple math.log math.radians math.sqrt fractions.Fraction".split()
)
"""Constructors and functions of plain constants."""
OPAQUE_CALLS = frozenset(
    "collections.namedtuple datetime.date datetime.datetime datetime.time datetime.timedelta "
    "datetime.timezone decimal.Decimal enum.auto object re.compile zoneinfo.ZoneInfo".split()
)
"""Constructors of other values, which are not looked into."""
NAMING_CALLS = frozenset(
    "dataclasses.field typing.NamedTuple typing.NewType typing.TypeVar typing.TypedDict".split()
)
"""Those that only keep what they are given, the server's own classes among it."""
TEXT_METHODS = frozenset({"encode", "split", "splitlines"})
TOOL, DATACLASS = "toolwright.tool", "dataclasses.dataclass"
CLASS_DECORATORS = frozenset({DATACLASS, "enum.unique"})
METHOD_DECORATORS = frozenset({"classmethod", "property", "staticmethod"})
_QUIET_METHODS = frozenset({"__repr__", "__str__"})
"""Special methods that nothing calls while an enumeration is made and used in constants."""
_NUMERIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_SETS = (ast.BitAnd, ast.BitOr, ast.BitXor)


class _WorkFound(Exception):
    """An expression does more than build a bounded constant."""

    def __init__(self, node: ast.expr) -> None:
        self.node = node


class _Kind(IntEnum):
    """Whose code can run where a value is used."""

    PLAIN = 0
    """Built-in values alone."""
    FOREIGN = 1
    """A module's or built-in's class, function or value."""
    OWN = 2
    """The server's."""


@dataclass(frozen=True)
class _Measure:
    """What is known of a constant: its size, of what kind it is, and its value where it is a
    number.
    """

    size: int = 1
    kind: _Kind = _Kind.OWN
    number: float | None = None

    @property
    def plain(self) -> bool:
        return self.kind is _Kind.PLAIN


@dataclass
class LoadScope:
    """The names that are bound while a server loads. `imports` are dotted names, aliases of them
    included, `classes` the server's own; a name that is bound twice is none of these. `values` are
    the constants so far.
    """

    imports: Mapping[str, str]
    classes: Mapping[str, ast.ClassDef]
    bound: frozenset[str]
    postponed: bool
    values: dict[str, _Measure] = field(default_factory=dict)

    def resolve(self, node: ast.expr) -> str:
        """The dotted name of what an expression names: of a module's or a built-in; "" for the
        server's own and for what is no plain name.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        root = self.imports.get(node.id, "" if node.id in self.bound else node.id)
        return ".".join([root, *reversed(parts)]) if root else ""


def work_on_load(source: ParsedSource) -> Found:
    """Code runs when the server is loaded; only imports, functions, classes and constants may."""
    yield from _check_statements(source.tree.body, build_scope(source))


def build_scope(source: ParsedSource) -> LoadScope:
    """The names that the top level of a server and its classes' bodies bind."""
    counts: Counter[str] = Counter()
    imports: dict[str, str] = {}
    classes: dict[str, ast.ClassDef] = {}
    for node in _iterate_loaded(source.tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                imports[alias.asname or first] = alias.name if alias.asname else first
                counts[alias.asname or first] += alias.asname is not None or "." not in alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                counts[alias.asname or alias.name] += 1
        elif isinstance(node, FunctionNode | ast.ClassDef):
            counts[node.name] += 1
            if isinstance(node, ast.ClassDef):
                classes[node.name] = node
        else:
            stored = (each for each in ast.walk(node) if isinstance(each, ast.Name))
            counts.update(each.id for each in stored if not isinstance(each.ctx, ast.Load))
            aliased = _find_alias(node, imports, counts)
            imports.update(aliased)
    once = {name for name, count in counts.items() if count <= 1}
    return LoadScope(
        {name: dotted for name, dotted in imports.items() if name in once},
        {name: node for name, node in classes.items() if name in once and name not in imports},
        frozenset(counts),
        imports.get("annotations") == "__future__.annotations",
    )


def _find_alias(
    node: ast.stmt, imports: Mapping[str, str], bound: Mapping[str, int]
) -> dict[str, str]:
    """The name that a statement gives to what another name says, by its dotted name."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return {}
    target = node.targets[0]
    dotted = LoadScope(imports, {}, frozenset(bound), False).resolve(node.value)
    return {target.id: dotted} if dotted and isinstance(target, ast.Name) else {}


def _iterate_loaded(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run on loading, those of classes' bodies included."""
    for node in body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _iterate_loaded(node.body)


def _check_statements(body: list[ast.stmt], scope: LoadScope) -> Found:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
            continue
        try:
            if isinstance(node, FunctionNode):
                _check_signature(node, scope)
            elif isinstance(node, ast.ClassDef) and not node.keywords:
                _check_class(node, scope)
                yield from _check_statements(node.body, scope)
                yield from _check_enumeration(node, scope)
            elif not _is_constant(node, scope):
                yield node.lineno, ast.unparse(node)[:80]
        except _WorkFound as work:
            yield work.node.lineno, ast.unparse(work.node)[:80]


def _is_constant(node: ast.stmt, scope: LoadScope) -> bool:
    """Whether a statement only names a constant, which the scope then knows. Raises _WorkFound."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.AnnAssign):
        if not scope.postponed:
            _measure(node.annotation, scope)
        targets: list[ast.expr] = [node.target]
    elif isinstance(node, ast.Assign):
        targets = node.targets
    else:
        return False
    found = _measure(node.value, scope) if node.value is not None else _Measure(1, _Kind.PLAIN)
    for target in targets:
        if isinstance(target, ast.Name):
            known = scope.values.get(target.id, found)
            number = found.number if known.number == found.number else None
            kind = max(known.kind, found.kind)
            scope.values[target.id] = _Measure(max(known.size, found.size), kind, number)
        elif isinstance(target, ast.Tuple) and node.value is not None:
            if not all(isinstance(each, ast.Name) for each in target.elts):
                return False
            parts = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else []
            if len(parts) != len(target.elts) and not found.plain:
                return False
            for each in target.elts:
                assert isinstance(each, ast.Name)
                scope.values[each.id] = _Measure(found.size, found.kind)
        else:
            return False
    return True


def _check_signature(node: ast.FunctionDef | ast.AsyncFunctionDef, scope: LoadScope) -> None:
    """Raises _WorkFound for decorators, defaults and evaluated annotations that do work."""
    for decorator in node.decorator_list:
        if scope.resolve(decorator) not in METHOD_DECORATORS | {TOOL}:
            raise _WorkFound(decorator)
    found: list[ast.expr | None] = [*node.args.defaults, *node.args.kw_defaults]
    if not scope.postponed:
        everyone = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        found += [argument.annotation for argument in everyone]
        found += [each.annotation for each in (node.args.vararg, node.args.kwarg) if each]
        found.append(node.returns)
    for value in found:
        if value is not None:
            _measure(value, scope)


def is_class_decorator(node: ast.expr, scope: LoadScope) -> bool:
    """Whether a decorator is `dataclass`, with or without arguments, or `unique`."""
    called = node.func if isinstance(node, ast.Call) else node
    return scope.resolve(called) in CLASS_DECORATORS


def _check_class(node: ast.ClassDef, scope: LoadScope) -> None:
    """Raises _WorkFound for decorators and bases that do work."""
    for decorator in node.decorator_list:
        if not is_class_decorator(decorator, scope):
            raise _WorkFound(decorator)
        if isinstance(decorator, ast.Call):
            for value in (*decorator.args, *(keyword.value for keyword in decorator.keywords)):
                if not _measure(value, scope).plain:
                    raise _WorkFound(value)
    for base in node.bases:
        _measure(base, scope)


def _check_enumeration(node: ast.ClassDef, scope: LoadScope) -> Found:
    """Methods that run while an enumeration's members are made, or where they stand in constants.

    https://docs.python.org/3/howto/enum.html#when-to-use-new-vs-init
    """
    lineage = _find_lineage(node, scope)
    bases = [base for each in lineage for base in each.bases]
    unknown = [base for base in bases if _is_unknown(base, scope)]
    if not unknown and not any(_is_enumeration(base, scope) for base in bases):
        return
    for base in unknown:
        yield base.lineno, f"{ast.unparse(base)[:60]} under the class {node.name}"
    for each in lineage:
        for part in each.body:
            for name in _find_defined_names(part):
                special = name.startswith("__") and name not in _QUIET_METHODS
                if special or name == "_generate_next_value_":
                    yield part.lineno, f"{name} of the enumeration {node.name}"


def _find_defined_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, FunctionNode | ast.ClassDef):
        yield node.name
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


def _is_enumeration(base: ast.expr, scope: LoadScope) -> bool:
    return scope.resolve(_strip_parameters(base)).startswith("enum.")


def _is_unknown(base: ast.expr, scope: LoadScope) -> bool:
    """Whether a base is the server's own and not one class: it could be an enumeration."""
    base = _strip_parameters(base)
    if isinstance(base, ast.Call) or scope.resolve(base):
        return False
    if isinstance(base, ast.Name) and base.id in scope.values:
        return scope.values[base.id].kind is not _Kind.FOREIGN
    return not (isinstance(base, ast.Name) and base.id in scope.classes)


def _strip_parameters(base: ast.expr) -> ast.expr:
    """The class in `Generic[T]`."""
    return base.value if isinstance(base, ast.Subscript) else base


def _find_lineage(node: ast.ClassDef, scope: LoadScope) -> list[ast.ClassDef]:
    """A class and all classes of the server that it derives from."""
    lineage, pending = [node], [node]
    while pending:
        for base in pending.pop().bases:
            named = _strip_parameters(base)
            parent = scope.classes.get(named.id) if isinstance(named, ast.Name) else None
            if parent is not None and parent not in lineage:
                lineage.append(parent)
                pending.append(parent)
    return lineage


def _measure(node: ast.expr, scope: LoadScope) -> _Measure:
    """What is known of the constant that an expression builds. Raises _WorkFound."""
    found = _measure_any(node, scope)
    if found.size > MAX_SIZE:
        raise _WorkFound(node)
    return found


def _measure_any(node: ast.expr, scope: LoadScope) -> _Measure:
    match node:
        case ast.Constant(value=value):
            return _measure_literal(value)
        case ast.Name(id=name):
            foreign = _Measure(1, _Kind.FOREIGN) if scope.resolve(node) else _Measure()
            return scope.values.get(name, foreign)
        case ast.Attribute():
            return _measure_attribute(node, scope)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return _measure_all(parts, scope)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if key is None:
                    _measure_plain(value, scope)
            return _measure_all([*values, *(key for key in keys if key is not None)], scope)
        case ast.Starred(value=value):
            return _measure_plain(value, scope)
        case ast.UnaryOp(op=sign, operand=operand):
            found = _measure_plain(operand, scope)
            known = isinstance(sign, ast.USub) and found.number is not None
            return replace(found, number=-(found.number or 0) if known else None)
        case ast.BinOp():
            return _measure_operator(node, scope)
        case ast.JoinedStr(values=values):
            return _measure_text(values, scope)
        case ast.Subscript(value=value, slice=index):
            whole, at = _measure(value, scope), _measure_index(index, scope)
            return _Measure(whole.size + at, whole.kind)
        case ast.Call():
            return _measure_call(node, scope)
    raise _WorkFound(node)


def _measure_literal(value: object) -> _Measure:
    if isinstance(value, str | bytes):
        return _Measure(len(value) + 1, _Kind.PLAIN)
    if isinstance(value, int):
        return _Measure(value.bit_length() // 8 + 1, _Kind.PLAIN, value)
    return _Measure(1, _Kind.PLAIN, value if isinstance(value, float) else None)


def _measure_attribute(node: ast.Attribute, scope: LoadScope) -> _Measure:
    """An attribute of a module or built-in, or of one of the server's classes: those of their
    members are properties, which may run code.
    """
    if isinstance(node.value, ast.Name) and node.value.id in scope.classes:
        return _Measure()
    if not scope.resolve(node):
        raise _WorkFound(node)
    return _Measure(1, _Kind.FOREIGN)


def _measure_all(parts: Iterable[ast.expr], scope: LoadScope) -> _Measure:
    found = [_measure(part, scope) for part in parts]
    kind = max((each.kind for each in found), default=_Kind.PLAIN)
    return _Measure(1 + sum(each.size for each in found), kind)


def _measure_plain(node: ast.expr, scope: LoadScope) -> _Measure:
    found = _measure(node, scope)
    if not found.plain:
        raise _WorkFound(node)
    return found


def _measure_operator(node: ast.BinOp, scope: LoadScope) -> _Measure:
    left, right = _measure(node.left, scope), _measure(node.right, scope)
    size = left.size + right.size
    if isinstance(node.op, _SETS):
        return _Measure(size, max(left.kind, right.kind))
    if left.number is not None and right.number is not None:
        return _compute(node, left.number, right.number)
    if left.plain and right.plain and isinstance(node.op, ast.Add | ast.Sub):
        return _Measure(size, _Kind.PLAIN)
    for times, repeated in ((left.number, right), (right.number, left)):
        if isinstance(node.op, ast.Mult) and isinstance(times, int) and repeated.plain:
            return _Measure(max(times, 1) * repeated.size, _Kind.PLAIN)
    raise _WorkFound(node)


def _compute(node: ast.BinOp, left: float, right: float) -> _Measure:
    """A number computed of numbers. Raises _WorkFound where it is none or too large."""
    bits = [value.bit_length() for value in (left, right) if isinstance(value, int)]
    if isinstance(node.op, ast.Pow | ast.LShift) and len(bits) == 2:
        bits.append(int(abs(right)) * (bits[0] if isinstance(node.op, ast.Pow) else 1))
    if max(bits, default=0) > MAX_BITS:
        raise _WorkFound(node)
    try:
        number = _NUMERIC[type(node.op)](left, right)
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise _WorkFound(node) from error
    if not isinstance(number, int | float):
        raise _WorkFound(node)
    return _measure_literal(number)


def _measure_text(values: list[ast.expr], scope: LoadScope) -> _Measure:
    size = 1
    for value in values:
        if isinstance(value, ast.FormattedValue):
            if value.format_spec is not None:
                raise _WorkFound(value)
            size += _measure_plain(value.value, scope).size * TEXT_FACTOR
        else:
            size += _measure(value, scope).size
    return _Measure(size, _Kind.PLAIN)


def _measure_index(index: ast.expr, scope: LoadScope) -> int:
    parts = [index.lower, index.upper, index.step] if isinstance(index, ast.Slice) else [index]
    return sum(_measure(part, scope).size for part in parts if part is not None)


def _measure_call(node: ast.Call, scope: LoadScope) -> _Measure:
    """What a constructor makes of constants. Raises _WorkFound for any other call."""
    name = scope.resolve(node.func)
    values = [*node.args, *(k.value for k in node.keywords if not _is_factory(name, k))]
    if name in NAMING_CALLS:
        return _Measure(_measure_all(values, scope).size, _Kind.FOREIGN)
    if name in OPAQUE_CALLS:
        whole = _measure_all(values, scope)
        if whole.kind is _Kind.OWN:
            raise _WorkFound(node)
        return _Measure(whole.size, _Kind.FOREIGN)
    if name not in PLAIN_CALLS and not _is_text_method(node.func):
        raise _WorkFound(node)
    found = [_measure_plain(value, scope) for value in values]
    size = 1 + sum(each.size for each in found)
    if name == "range":
        size += _count_elements(node, found)
    elif name == "bytes" and any(each.number is not None for each in found):
        raise _WorkFound(node)
    elif name == "fractions.Fraction":
        if any(each.number is None for each in found):
            raise _WorkFound(node)
        return _Measure(size, _Kind.FOREIGN)
    return _Measure(size, _Kind.PLAIN)


def _count_elements(node: ast.Call, found: Iterable[_Measure]) -> int:
    """How many elements a range gives to a constructor. Raises _WorkFound where that is unknown."""
    numbers = [each.number for each in found]
    if not all(isinstance(number, int) for number in numbers):
        raise _WorkFound(node)
    return sum(abs(int(number)) for number in numbers if number is not None)


def _is_factory(name: str, keyword: ast.keyword) -> bool:
    """Whether a keyword is a data class's `default_factory`, which runs when the class is used."""
    factory = name == "dataclasses.field" and keyword.arg == "default_factory"
    return factory and isinstance(keyword.value, ast.Lambda)


def _is_text_method(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Constant)
        and node.attr in TEXT_METHODS
    )
