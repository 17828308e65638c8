"""Functions on 64-bit integers, written in Python, as LLVM IR.

The runtime (``runtime/``) is written in a subset of Python: each value is a 64-bit integer that
wraps; there are assignments, ``if``, ``while``, ``for ... in range``, calls of other such functions
and of ``intrinsics``. Shift counts are taken modulo 64, so no shift is undefined. ``>>`` is
arithmetic.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Collection, Sequence
from types import FunctionType

from . import intrinsics
from .lines import FLOAT

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or",
    ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
_COMPARE = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip
_ATTRIBUTES = "#attributes"
"""What stands for a function's attributes until these are known."""
DECLARATIONS = """
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


class Untranslatable(Exception):
    """Python that is not in the subset."""


def module_text(
    entries: Sequence[Callable[..., int]], inlined: Collection[str] = (), internal: bool = False
) -> str:
    """LLVM IR of some functions and of all that they call.

    ``inlined``: always, by name; ``internal``: the functions are for this module alone.
    """
    todo: list[FunctionType] = [entry for entry in entries if isinstance(entry, FunctionType)]
    exported = set() if internal else {entry.__name__ for entry in todo}
    done: dict[str, str] = {}
    while todo:
        function = todo.pop()
        name = function.__name__
        if name not in done:
            definition, called = _translated(function)
            linkage = "" if name in exported else "internal "
            how = "alwaysinline nounwind" if name in inlined else "nounwind"
            done[name] = f"define {linkage}{definition.replace(_ATTRIBUTES, how, 1)}"
            todo += called
    return DECLARATIONS + "\n".join(done[name] for name in sorted(done))


@functools.cache
def _translated(function: FunctionType) -> tuple[str, tuple[FunctionType, ...]]:
    """A function's definition but for its linkage, and the functions that it calls."""
    made = _Translator(function)
    return made.text(), tuple(made.called)


class _Translator:
    """Translates one function; ``called``: the functions that it calls."""

    def __init__(self, function: FunctionType) -> None:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        self.function, self.tree, self.globals = function, tree, function.__globals__
        self.called: list[FunctionType] = []
        self.slots: dict[str, str] = {}
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.loops: list[tuple[str, str]] = []
        self.ended = False

    def text(self) -> str:
        """The function's definition but for its linkage."""
        names = [argument.arg for argument in self.tree.args.args]
        for name in names:
            self.emit(f"store i64 %a_{name}, ptr {self.slot(name)}")
        self.body(self.tree.body)
        if not self.ended:
            self.emit("ret i64 0")
        arguments = ", ".join(f"i64 %a_{name}" for name in names)
        head = f"i64 @{self.tree.name}({arguments}) {_ATTRIBUTES} {{\nentry:"
        return "\n".join([head, *self.allocas, *self.lines, "}\n"])

    # -- lines ------------------------------------------------------------------

    def emit(self, line: str) -> None:
        """Add an instruction."""
        self.lines.append(f"  {line}")

    def value(self, expression: str) -> str:
        """Add an instruction that has a result."""
        self.count += 1
        self.emit(f"%t{self.count} = {expression}")
        return f"%t{self.count}"

    def label(self) -> str:
        """Return the name of a new basic block."""
        self.count += 1
        return f"L{self.count}"

    def begin(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.ended = False

    def jump(self, label: str) -> None:
        """End a basic block, unless it has ended."""
        if not self.ended:
            self.emit(f"br label %{label}")
        self.ended = True

    def slot(self, name: str) -> str:
        """Return the place of a local variable."""
        if name not in self.slots:
            self.slots[name] = f"%s_{name}"
            self.allocas.append(f"  %s_{name} = alloca i64")
        return self.slots[name]

    # -- statements -------------------------------------------------------------

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Translate statements in their order."""
        for statement in statements:
            if self.ended:
                return
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Translate one statement."""
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self.integer(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.emit(f"store i64 {self.integer(value)}, ptr {self.slot(name)}")
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.emit(f"store i64 {self.integer(value)}, ptr {self.slot(name)}")
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                read = ast.Name(id=target.id, ctx=ast.Load())
                result = self.integer(ast.BinOp(left=read, op=op, right=value))
                self.emit(f"store i64 {result}, ptr {self.slot(name)}")
            case ast.If(test=test, body=body, orelse=orelse):
                self.branch(test, body, orelse)
            case ast.While(test=test, body=body, orelse=[]):
                self.loop(test, body, None)
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id="range"), args=args),
                body=body,
                orelse=[],
            ):
                self.counted(name, args, body)
            case ast.Return(value=ast.expr() as value):
                self.emit(f"ret i64 {self.integer(value)}")
                self.ended = True
            case ast.Break():
                self.jump(self.loops[-1][1])
            case ast.Continue():
                self.jump(self.loops[-1][0])
            case _:
                raise Untranslatable(f"{self.function.__name__}: {ast.unparse(node)}")

    def branch(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        """Translate ``if``; of a condition known now only one side is."""
        yes, no, after = self.label(), self.label(), self.label()
        self.emit(f"br i1 {self.condition(test)}, label %{yes}, label %{no}")
        self.begin(yes)
        self.body(body)
        self.jump(after)
        self.begin(no)
        self.body(orelse)
        self.jump(after)
        self.begin(after)

    def loop(self, test: ast.expr, body: list[ast.stmt], step: ast.stmt | None) -> None:
        """Translate a loop; ``step``: what is done before each further round."""
        head, inside, again, after = (self.label() for _ in range(4))
        self.jump(head)
        self.begin(head)
        self.emit(f"br i1 {self.condition(test)}, label %{inside}, label %{after}")
        self.begin(inside)
        self.loops.append((again, after))
        self.body(body)
        self.loops.pop()
        self.jump(again)
        self.begin(again)
        if step:
            self.statement(step)
        self.jump(head)
        self.begin(after)

    def counted(self, name: str, args: list[ast.expr], body: list[ast.stmt]) -> None:
        """Translate ``for name in range(...)``; the bounds are evaluated once."""
        first = args[0] if len(args) > 1 else ast.Constant(value=0)
        last = args[1] if len(args) > 1 else args[0]
        by = args[2] if len(args) > 2 else ast.Constant(value=1)
        self.emit(f"store i64 {self.integer(first)}, ptr {self.slot(name)}")
        self.count += 1
        end = f"end{self.count}"
        self.emit(f"store i64 {self.integer(last)}, ptr {self.slot(end)}")
        here = ast.Name(id=name, ctx=ast.Load())
        test = ast.Compare(here, [ast.Lt()], [ast.Name(id=end, ctx=ast.Load())])
        step = ast.AugAssign(ast.Name(id=name, ctx=ast.Store()), ast.Add(), by)
        self.loop(test, body, step)

    # -- expressions ------------------------------------------------------------

    def integer(self, node: ast.expr) -> str:
        """Translate an expression to a 64-bit integer."""
        match node:
            case ast.Constant(value=int() as number):
                return str(_wrapped(int(number)))
            case ast.Name(id=name):
                if name in self.slots:
                    return self.value(f"load i64, ptr {self.slots[name]}")
                return str(_wrapped(self.constant(name)))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                one, other = self.integer(left), self.integer(right)
                if isinstance(op, (ast.LShift, ast.RShift)):
                    other = self.value(f"and i64 {other}, 63")
                return self.value(f"{_BINARY[type(op)]} i64 {one}, {other}")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.value(f"sub i64 0, {self.integer(operand)}")
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self.value(f"xor i64 {self.integer(operand)}, -1")
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(name, args)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self.value(f"zext i1 {self.condition(node)} to i64")
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.count += 1
                place = self.slot(f"either{self.count}")
                yes, no, after = self.label(), self.label(), self.label()
                self.emit(f"br i1 {self.condition(test)}, label %{yes}, label %{no}")
                for label, value in ((yes, body), (no, orelse)):
                    self.begin(label)
                    self.emit(f"store i64 {self.integer(value)}, ptr {place}")
                    self.jump(after)
                self.begin(after)
                return self.value(f"load i64, ptr {place}")
            case _:
                raise Untranslatable(f"{self.function.__name__}: {ast.unparse(node)}")

    def condition(self, node: ast.expr) -> str:
        """Translate an expression to one bit."""
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                one, other = self.integer(left), self.integer(right)
                return self.value(f"icmp {_COMPARE[type(op)]} i64 {one}, {other}")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.value(f"xor i1 {self.condition(operand)}, true")
            case ast.BoolOp(op=op, values=[first, *rest]):
                return self.short_circuit(isinstance(op, ast.And), first, rest)
            case ast.Call(func=ast.Name(id="below"), args=[left, right]):
                return self.value(f"icmp ult i64 {self.integer(left)}, {self.integer(right)}")
            case _:
                return self.value(f"icmp ne i64 {self.integer(node)}, 0")

    def short_circuit(self, every: bool, first: ast.expr, rest: list[ast.expr]) -> str:
        """Translate ``and`` (``every``) and ``or``."""
        self.count += 1
        place = self.slot(f"truth{self.count}")
        after = self.label()
        self.emit(f"store i64 {0 if every else 1}, ptr {place}")
        for node in (first, *rest):
            go_on = self.label()
            ways = (go_on, after) if every else (after, go_on)
            self.emit(f"br i1 {self.condition(node)}, label %{ways[0]}, label %{ways[1]}")
            self.begin(go_on)
        self.emit(f"store i64 {1 if every else 0}, ptr {place}")
        self.jump(after)
        self.begin(after)
        found = self.value(f"load i64, ptr {place}")
        return self.value(f"icmp ne i64 {found}, 0")

    def constant(self, name: str) -> int:
        """Return a global constant."""
        found = self.globals.get(name)
        if not isinstance(found, int):
            raise Untranslatable(f"{self.function.__name__}: {name} is no integer")
        return found

    def call(self, name: str, args: list[ast.expr]) -> str:
        """Translate a call."""
        target = self.globals.get(name)
        if not isinstance(target, FunctionType):
            raise Untranslatable(f"{self.function.__name__}: {name} is no function")
        if target.__module__ == intrinsics.__name__:
            return self.intrinsic(name, args)
        self.called.append(target)
        given = ", ".join(f"i64 {self.integer(argument)}" for argument in args)
        return self.value(f"call i64 @{name}({given})")

    def intrinsic(self, name: str, args: list[ast.expr]) -> str:
        """Translate a call of one of ``intrinsics``."""
        if name == "stack":
            assert isinstance(args[0], (ast.Constant, ast.Name))
            words = self.constant(args[0].id) if isinstance(args[0], ast.Name) else args[0].value
            assert isinstance(words, int)
            self.count += 1
            self.allocas.append(f"  %m{self.count} = alloca [{words} x i64], align 16")
            return self.value(f"ptrtoint ptr %m{self.count} to i64")
        if name == "below":
            return self.value(f"zext i1 {self.condition(_call(name, args))} to i64")
        given = [self.integer(argument) for argument in args]
        if name == "count_bits":
            return self.value(f"call i64 @llvm.ctpop.i64(i64 {given[0]})")
        if name == "lowest_bit":
            return self.value(f"call i64 @llvm.cttz.i64(i64 {given[0]}, i1 false)")
        if name == "highest_bit":
            above = self.value(f"call i64 @llvm.ctlz.i64(i64 {given[0]}, i1 false)")
            return self.value(f"sub i64 63, {above}")
        if name in ("sum_f32", "sum_f64"):
            return self.sum(given, int(name[-2:]))
        at = self.value(f"inttoptr i64 {given[0]} to ptr")
        if name == "call_kernel":
            rest = ", ".join(f"i64 {argument}" for argument in given[1:])
            return self.value(f"call i64 {at}({rest})")
        if name == "fill":
            byte = self.value(f"trunc i64 {given[1]} to i8")
            self.emit(
                f"call void @llvm.memset.p0.i64(ptr {at}, i8 {byte}, i64 {given[2]}, i1 false)"
            )
            return "0"
        bits = int(name[-2:].lstrip("de"))
        if name.startswith("load"):
            found = self.value(f"load i{bits}, ptr {at}, align 1")
            return found if bits == 64 else self.value(f"zext i{bits} {found} to i64")
        value = given[1] if bits == 64 else self.value(f"trunc i64 {given[1]} to i{bits}")
        self.emit(f"store i{bits} {value}, ptr {at}, align 1")
        return "0"

    def sum(self, given: Sequence[str], bits: int) -> str:
        """Add floating-point numbers, as bits in 64-bit integers."""
        kind = FLOAT[bits]
        if bits < 64:
            given = [self.value(f"trunc i64 {value} to i{bits}") for value in given]
        one, other = (self.value(f"bitcast i{bits} {value} to {kind}") for value in given)
        total = self.value(f"fadd {kind} {one}, {other}")
        raw = self.value(f"bitcast {kind} {total} to i{bits}")
        return raw if bits == 64 else self.value(f"zext i{bits} {raw} to i64")


def _call(name: str, args: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(id=name, ctx=ast.Load()), args, [])


def _wrapped(number: int) -> int:
    """A number as a signed one of 64 bits."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number
