"""PTX text to ``Module``: as NVRTC (both builds), Numba and Triton write it.

Source of the grammar: PTX ISA, chapters "Syntax" and "Directives".
"""

import functools
import hashlib
from collections.abc import Collection

from kernels.compiler.toolkit import short_path
from kernels.source_access import plain_name

from ..errors import PtxError
from .debug_sections import InlinedCall, inlined_calls, place_inlined
from .declarations import CALLED, ENTRY, DeclarationParser
from .lexer import Cursor, unquoted
from .module import Function, Instruction, Location, Module, Operand, Reg, Symbol
from .prototypes import PrototypeParser
from .scopes import NameScopes
from .targets import refusal

_SPACES = {".shared", ".global", ".const", ".local", ".param", ".tex"}
_LINES = 10**9
"""Numbers of files, lines and columns are below this."""
_INLINED = 100
"""Maximum depth of inlined calls that are distinguished."""
_LINKAGE = {".visible", ".extern", ".weak", ".common"}


def parse(text: str, known: Collection[str] | None = None) -> Module:
    """Parse a PTX text; bodies of functions are read when ``Function.load`` asks for them.

    Of opcodes that are not ``known`` the operands are passed over: they may be anything.

    Raises:
        PtxError: Naming the PTX line.
    """
    return _Parser(text, known).module()


class _Parser:
    def __init__(self, text: str, known: Collection[str] | None) -> None:
        self.known = known
        self.text = text
        self.result = Module(hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16])
        self.cursor = Cursor(text)
        self.names = NameScopes(self.cursor)
        self.declarations = DeclarationParser(self.cursor, self.names)
        self.operands = self.declarations.operands
        self.prototypes = PrototypeParser(self.cursor, self.names, self.declarations, self.result)
        self.files: dict[int, str] = {}
        self.location: Location | None = None
        self.places: dict[tuple[str, int, int], Location] = {}
        self.pending_labels: list[str] = []
        self.branch_targets: dict[str, tuple[str, ...]] = {}

    # -- module level ---------------------------------------------------------

    def module(self) -> Module:
        self.heading()
        linkage: set[str] = set()
        while self.cursor.tokens[self.cursor.at].kind != "end":
            text = self.cursor.peek
            if text in _LINKAGE:
                linkage.add(self.cursor.next().text)
                continue
            if text in (".entry", ".func"):
                self.function(".extern" in linkage)
            elif text in _SPACES:
                for variable in self.declarations.variables(
                    self.result.variables, ".extern" in linkage
                ):
                    self.result.variables[variable.name] = variable
            else:
                self.directive()
            linkage.clear()
        return self.result

    def heading(self) -> None:
        """``.version`` and ``.target``, which come first, and ``.address_size``."""
        self.result.version = self.cursor.headline(".version", r"\d{1,4}\.\d{1,4}")
        while not self.result.target or self.cursor.peek == ".target":
            self.result.target = self.cursor.headline(".target", r"(sm|compute)_\w+")
            names = [self.result.target]
            while self.cursor.accept(","):
                names.append(self.cursor.next().text)
            self.result.unoptimised |= "debug" in names
            if why := refusal(self.result.version, names):
                self.cursor.at -= 1
                self.cursor.fail(why)
        if self.cursor.accept(".address_size") and (size := self.cursor.integer()) != 64:
            self.cursor.at -= 1
            self.cursor.fail(f".address_size {size}: a 64-bit GPU's addresses have 64 bits")

    def directive(self) -> None:
        token = self.cursor.next()
        if token.text == ".file":
            self.file()
        elif token.text.startswith(".section"):
            while self.cursor.peek != "{":
                self.cursor.next()
            self.cursor.skip_braces()
        elif token.text in (".pragma", ".alias"):
            self.cursor.skip_statement()
        else:
            raise PtxError(f"PTX line {token.line}: cannot read {token.text!r} here")

    def file(self) -> None:
        number, name = self.cursor.integer(), self.cursor.next()
        if name.kind != "string":
            raise PtxError(f"PTX line {name.line}: expected a file's name, found {name.text!r}")
        self.files[number] = plain_name(unquoted(name.text))
        while self.cursor.accept(","):  # time and size
            self.cursor.integer()

    # -- functions ------------------------------------------------------------

    def function(self, external: bool) -> None:
        is_entry = self.cursor.next().text == ".entry"
        results = self.declarations.param_list() if not is_entry and self.cursor.peek == "(" else ()
        name = self.cursor.name()
        params = self.declarations.param_list() if self.cursor.peek == "(" else ()
        function = Function(name, is_entry, params, results)
        self.prototypes.same_as_before(function, external)
        said = False
        while self.cursor.peek not in ("{", ";"):
            if self.cursor.accept(".pragma"):
                self.cursor.skip_statement()
                continue
            token = self.cursor.next()
            extents = self.cursor.extents()
            if not is_entry and token.text in CALLED[bool(results) or said :]:
                said = True
            elif not is_entry or token.text not in ENTRY:
                raise PtxError(f"PTX line {token.line}: cannot read {token.text!r} here")
            elif token.text == ".maxntid":
                function.max_threads = extents
            elif token.text == ".reqntid":
                function.required_threads = extents
            elif token.text == ".reqnctapercluster":
                function.required_cluster = extents
            elif token.text == ".maxclusterrank":
                function.max_cluster = extents[0] if extents else 0
            elif token.text == ".explicitcluster":
                function.explicit_cluster = True
            function.in_clusters |= token.text == ".blocksareclusters"
        if name in self.result.functions:
            how = "declared after its definition" if self.cursor.peek == ";" else "defined twice"
            self.cursor.fail(f"the function {name!r} is {how}")
        if self.cursor.accept(";"):
            return
        start = self.cursor.at
        self.cursor.skip_braces()
        function.read_body = lambda: self.body(function, start)
        self.result.functions[name] = function

    def body(self, function: Function, start: int) -> None:
        """Read a function's body, which is done for those functions only that are called."""
        self.cursor.at = start
        self.location = None
        self.places = {}
        self.names.current = function
        self.cursor.expect("{")
        params = (*function.params, *function.results)
        self.names.scopes = [{(name := p.register or p.name): name for p in params}]
        function.registers.update((p.register, p.type) for p in params if p.register)
        self.pending_labels = []
        try:
            self.block(function)
        except PtxError as error:
            if self.location is None:
                raise
            at = self.location.user
            raise PtxError(f"{short_path(at.file)}:{at.line}: {error}") from None
        function.labels.update(dict.fromkeys(self.pending_labels, len(function.body)))
        place_inlined(function, self.inlined)

    @functools.cached_property
    def inlined(self) -> list[InlinedCall]:
        """The calls that the unoptimised build inlined."""
        return inlined_calls(self.text, self.files)

    def block(self, function: Function) -> None:
        while not self.cursor.accept("}"):
            token = self.cursor.tokens[self.cursor.at]
            if token.kind == "end":
                self.cursor.fail("the text ends inside a function")
            text = token.text
            if self.cursor.accept("{"):
                self.cursor.enter(len(self.names.scopes) + 1)
                self.names.open()
                self.block(function)
                self.names.scopes.pop()
            elif text == ".reg":
                self.declarations.register_declaration(function)
            elif text in _SPACES:
                for variable in self.declarations.variables(None):
                    variable.name = self.names.declare(variable.name)
                    function.variables[variable.name] = variable
            elif text == ".loc":
                self.cursor.next()
                self.loc(function)
            elif text.startswith("."):
                self.directive()
            elif self.cursor.tokens[self.cursor.at + 1].text == ":" and token.kind == "word":
                self.cursor.at += 2
                label = self.names.declare_label(text)
                if self.cursor.peek == ".branchtargets":
                    self.cursor.next()
                    names = [self.names.resolve(self.cursor.name())]
                    while self.cursor.accept(","):
                        names.append(self.names.resolve(self.cursor.name()))
                    self.cursor.expect(";")
                    self.branch_targets[label] = tuple(names)
                elif self.cursor.peek in (".callprototype", ".calltargets"):
                    self.prototypes.prototype(label)
                else:
                    self.pending_labels.append(label)
            else:
                self.instruction(function)

    def loc(self, function: Function) -> None:
        name, line, column = self.position()
        inlined = None
        while self.cursor.accept(","):
            if self.cursor.accept("function_name"):
                self.cursor.name()
                if self.cursor.accept("+"):
                    self.cursor.integer()
            else:
                self.cursor.expect("inlined_at")
                inlined = self.inlined_parent(*self.position())
        if line == 0:  # compiler-made code: keep the last real line
            return
        self.location = Location(name, line, column, inlined)
        self.places[name, line, column] = self.location
        function.location = function.location or self.location

    def position(self) -> tuple[str, int, int]:
        """Return a file, a line and a column."""
        integer = self.cursor.integer
        found = file, line, column = integer(), integer(), integer()
        if min(found) < 0 or max(found) >= _LINES:
            self.cursor.at -= 1
            self.cursor.fail(".loc needs a file, a line and a column")
        return self.files.get(file, f"file {file}"), line, column

    def inlined_parent(self, name: str, line: int, column: int) -> Location:
        """Return the call site; its own inlining is what was last said of that place."""
        for here in self.location.chain if self.location else ():
            if here.file == name and here.line == line and here.column == column:
                return here
        return self.places.get((name, line, column)) or Location(name, line, column)

    # -- instructions ---------------------------------------------------------

    def instruction(self, function: Function) -> None:
        guard = None
        first = token = self.cursor.tokens[self.cursor.at]
        if token.text.startswith("@"):
            self.cursor.next()
            word, negated = token.text[1:], False
            if not word:
                negated, word = self.cursor.accept("!"), self.cursor.name()
            guard = Reg(self.names.resolve(word), negated)
        token = self.cursor.next()
        if token.kind != "word":
            raise PtxError(f"PTX line {token.line}: expected an instruction, found {token.text!r}")
        opcode, *modifiers = token.text.split(".")
        cursor = self.cursor
        while cursor.tokens[cursor.at].kind == "word" and cursor.peek.startswith("."):
            modifiers += cursor.next().text[1:].split(".")
        made = Instruction(opcode, tuple(modifiers), (), guard, first.line, self.location)
        made.at = first.at
        if opcode == "call":
            self.call(made)
        elif self.known is not None and opcode not in self.known:
            self.cursor.skip_statement()  # refused when a kernel reaches it, by its name
        else:
            made.operands = tuple(self.operands.operands())
        if opcode == "bra" and len(made.operands) == 1:
            made.targets, made.operands = (self.label(made.operands[0]),), ()
        elif opcode == "brx" and len(made.operands) == 2:
            table = self.branch_targets.get(self.label(made.operands[1]), ())
            made.targets, made.operands = table, made.operands[:1]
        function.labels.update(dict.fromkeys(self.pending_labels, len(function.body)))
        self.pending_labels = []
        function.body.append(made)

    def label(self, operand: Operand | None) -> str:
        if not isinstance(operand, Symbol):
            self.cursor.fail("a branch needs a label")
        return operand.name  # type: ignore[union-attr]

    def call(self, made: Instruction) -> None:
        if self.cursor.accept("("):
            made.results = self.operands.results()
            self.cursor.expect(",")
        target = self.cursor.name()
        made.targets = (self.names.resolve(target),)
        pointer = made.targets[0] in self.names.current.registers
        at = self.cursor.at
        if not pointer and self.prototypes.declared.get(target, (at,))[0] >= at:
            self.cursor.fail(f"the function {target!r} is called, and not declared before")
        more = self.cursor.accept(",")
        if more and self.cursor.accept("("):
            made.operands, more = self.operands.passed(), self.cursor.accept(",")
        made.targets += (self.prototypes.signature(more),) if pointer else ()
        self.cursor.skip_statement()
