"""Declarations of variables, registers and parameters, and what ptxas asks of them."""

from ..errors import PtxError
from .header import Param
from .module import TYPES, Function, Symbol, Variable
from .operands import OperandParser, float_constant
from .types import TYPE_SIZES

_MAX_ALIGN = 1 << 20
ENTRY = {
    ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".reqnctapercluster",
    ".maxclusterrank", ".explicitcluster", ".blocksareclusters",
}  # fmt: skip
"""Directives of an entry."""
CALLED = (".noreturn", ".abi_preserve", ".abi_preserve_control")
"""Those of other functions; the first before all others, of what gives nothing."""
_MAX_REGISTERS = 1 << 18
_VECTOR_BYTES = 16
_NO_TYPE = ("bf16", "bf16x2")
"""Types of instructions that no register and no variable has: they are held as bits."""


class DeclarationParser(OperandParser):
    """Reads declarations; names of nested scopes get a number."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.scope_count = 0
        self.ahead: set[str] = set()

    def variables(
        self, module: dict[str, Variable] | None, external: bool = False
    ) -> list[Variable]:
        """One declaration: ``.space [.align N] .type name[dims] [= init] {, name...} ;``.

        ``module``: its variables so far, ``None`` within a function.
        """
        space = self.next().text.lstrip(".")
        align: int | None = None
        ptx_type, vector = "", 1
        while self.peek.startswith("."):
            attribute = self.next().text[1:]
            if attribute == "align":
                align = self.integer()
            elif attribute in TYPES:
                ptx_type = attribute
            elif attribute in ("v2", "v4"):
                vector = int(attribute[1])
            elif attribute == "attribute":
                self.expect("(")
                while not self.accept(")"):
                    self.next()
            elif attribute in ("texref", "samplerref", "surfref"):
                space, ptx_type = "texture", "b64"
            else:
                self.fail(f"cannot read '.{attribute}' here")
        self._refuse(_wrong_type(ptx_type))
        if ptx_type not in TYPE_SIZES:
            self.fail(f"a variable needs a type, found {self.peek!r}")
        align = TYPE_SIZES[ptx_type] * vector if align is None else align
        self._check_align(align)
        found: list[Variable] = []
        while True:
            name = self.name()
            dims: list[int] = [vector] if vector > 1 else []
            extents: list[int] = []
            while self.accept("["):
                extents.append(0 if self.peek == "]" else self.integer())
                self.expect("]")
            if any(extent < 0 for extent in extents):
                self.fail(f"{name!r} has a negative extent")
            init: tuple[int | Symbol, ...] = ()
            if space == "texture":
                while self.peek not in (",", ";"):
                    self.next()
            elif self.accept("="):
                init = tuple(self._initialiser(ptx_type))
            shape = tuple(extents + dims)
            if shape and shape[0] == 0 and init:
                shape = (len(init), *shape[1:])
            variable = Variable(name, space, ptx_type, shape, align, init, external)
            if len(init) * TYPE_SIZES[ptx_type] > variable.nbytes:
                self.fail(f"{name!r} has more initial values than elements")
            self._refuse(_wrong_variable(variable, vector, module))
            found.append(variable)
            if self.accept(","):
                continue
            self.expect(";")
            return found

    def param_list(self) -> tuple[Param, ...]:
        """Parameters of a function, or its results, in parentheses."""
        self.expect("(")
        params: list[Param] = []
        offset = 0
        while not self.accept(")"):
            ptx_type = ""
            align: int | None = None
            pointer = in_register = False
            while self.peek.startswith("."):
                word = self.next().text[1:]
                pointer = pointer or word == "ptr"  # what follows is of what it points at
                in_register |= word == "reg"
                if word == "align":
                    stated = self.integer()
                    align = align if pointer else stated
                elif word in TYPES:
                    ptx_type = word
                elif in_register and word in ("v2", "v4"):
                    self.fail("a vector register as a parameter: use scalars")
            name = self.name()
            count = 1
            if not in_register and self.accept("["):
                count = 0 if self.peek == "]" else self.integer()
                self.expect("]")
            if ptx_type not in TYPE_SIZES:
                self.fail(f"parameter {name!r} has no type")
            if count < 0:
                self.fail(f"parameter {name!r} has a negative extent")
            if name != "_" and any(name in (p.name, p.register) for p in params):
                self.fail(f"{name!r} is declared twice")
            align = TYPE_SIZES[ptx_type] if align is None else align
            self._check_align(align)
            offset = -(-offset // align) * align
            register = name if in_register else ""
            kept = f"{name}#param" if in_register else name
            params.append(Param(kept, ptx_type, count, align, offset, register))
            offset += params[-1].nbytes
            self.accept(",")
        return tuple(params)

    def register_declaration(self, function: Function) -> None:
        """``.reg .type name {, name<count>...} ;``."""
        self.next()
        ptx_type = self.next().text[1:]
        vector = 1
        if ptx_type in ("v2", "v4"):
            vector, ptx_type = int(ptx_type[1]), self.next().text[1:]
        self._refuse(_wrong_type(ptx_type))
        if vector > 1:
            self.fail("the simulator does not execute vector registers yet (use scalars)")
        if ptx_type not in TYPES:
            self.fail(f"cannot declare registers of type {ptx_type!r}")
        while True:
            name = self.name()
            if self.accept("<"):
                count = self.integer()
                self.expect(">")
                if not 0 <= count <= _MAX_REGISTERS - len(function.registers):
                    self.fail(f"{count + len(function.registers):,} registers")
                for i in range(count):
                    function.registers[self.declare(f"{name}{i}")] = ptx_type
            else:
                function.registers[self.declare(name)] = ptx_type
            if not self.accept(","):
                break
        self.expect(";")

    def open_scope(self) -> None:
        """A nested scope begins; a branch may come before the label that it means."""
        self.scopes.append({})
        depth, at = 1, self.at
        while depth and self.tokens[at].kind != "end":
            token = self.tokens[at]
            depth += (token.text == "{") - (token.text == "}")
            label = token.kind == "word" and self.tokens[at + 1].text == ":"
            if depth == 1 and label and token.text not in self.scopes[-1]:
                self.ahead.add(self.declare(token.text))
            at += 1

    def declare_label(self, name: str) -> str:
        """As ``declare``, of what ``open_scope`` may have declared."""
        known = self.scopes[-1].get(name, "")
        if known not in self.ahead:
            return self.declare(name)
        self.ahead.remove(known)
        return known

    def declare(self, name: str) -> str:
        """A name that is unique in the function: nested scopes may repeat one."""
        if name in self.scopes[-1]:
            line = self.tokens[self.at - 1].line
            raise PtxError(f"PTX line {line}: {name!r} is declared twice")
        unique = name
        if len(self.scopes) > 1:
            self.scope_count += 1
            unique = f"{name}#{self.scope_count}"
        self.scopes[-1][name] = unique
        return unique

    def _refuse(self, why: str) -> None:
        if why:
            self.fail(why)

    def _check_align(self, align: int) -> None:
        if not 0 < align <= _MAX_ALIGN or align & (align - 1):
            self.fail(f"an alignment of {align} bytes")

    def _initialiser(self, ptx_type: str, depth: int = 1) -> list[int | Symbol]:
        if self.accept("{"):
            self.enter(depth)
            values: list[int | Symbol] = []
            while not self.accept("}"):
                values += self._initialiser(ptx_type, depth + 1)
                self.accept(",")
            return values
        token = self.tokens[self.at]
        if token.kind == "word" and not self.begins_constant:
            self.next()
            if token.text == "generic":
                self.expect("(")
                symbol = self.name()
                self.expect(")")
            else:
                symbol = token.text
            return [Symbol(symbol, self.offset())]
        imm = self.constant()
        if self.peek == "(":
            self.fail("a byte of an address, as in 0xff(name): write the whole address")
        if ptx_type in ("f32", "f64") and imm.kind == "int":
            self.fail(f"the whole number {imm.value} for a .{ptx_type}")
        if ptx_type in ("f32", "f64") and imm.kind != ptx_type:
            imm = float_constant(imm, ptx_type)
        return [imm.value]


def _wrong_type(ptx_type: str) -> str:
    """Why nothing can be declared with a type; empty if it can."""
    if ptx_type in _NO_TYPE:
        return f"nothing is declared as .{ptx_type}: .b{8 * TYPE_SIZES[ptx_type]} holds it"
    return ""


def _wrong_variable(variable: Variable, vector: int, module: dict[str, Variable] | None) -> str:
    """Why a variable cannot be declared so; empty if it can.

    ``vector``: elements of ``.v2`` or ``.v4``, else 1; ``module``: its variables so far, ``None``
    within a function.
    """
    name, space = variable.name, variable.space
    if variable.init and space in ("shared", "local", "param"):
        return f"{name!r} is in .{space} and cannot have an initial value"
    if 0 in variable.dims and not variable.external:
        return f"{name!r} has no extent"
    if vector * TYPE_SIZES[variable.type] > _VECTOR_BYTES:
        return f"{name!r} is a vector of more than {_VECTOR_BYTES} bytes"
    if module is None:
        return ""
    if space in ("local", "param", "tex"):
        return f"{name!r} is in .{space} and stands outside of a function"
    before = module.get(name)
    if before and not before.external and not variable.external:
        return f"{name!r} is declared twice"
    return ""
