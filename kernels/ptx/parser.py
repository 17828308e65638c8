"""PTX text to ``Module``: as NVRTC (both builds), Numba and Triton write it.

Source of the grammar: PTX ISA, chapters "Syntax" and "Directives".
"""

import functools
import hashlib
from collections.abc import Collection

from kernels.reading import plain_name
from kernels.toolkit import short_path

from ..errors import PtxError
from .debug_info import InlinedCall, inlined_calls, place_inlined
from .declarations import CALLED, ENTRY
from .lexer import unquoted
from .module import Function, Instruction, Location, Module, Operand, Reg, Symbol
from .prototypes import PrototypeParser
from .targets import refusal

_SPACES = {".shared", ".global", ".const", ".local", ".param", ".tex"}
_LINES = 10**9
"""Numbers of files, lines and columns are below this."""
_INLINED = 100
"""Calls inlined into each other that are told apart."""
_LINKAGE = {".visible", ".extern", ".weak", ".common"}


def parse(text: str, known: Collection[str] | None = None) -> Module:
    """Parse a PTX text; bodies of functions are read when ``Function.load`` asks for them.

    Of opcodes that are not ``known`` the operands are passed over: they may be anything.

    Raises:
        PtxError: Naming the PTX line.
    """
    return _Parser(text, known).module()


class _Parser(PrototypeParser):
    def __init__(self, text: str, known: Collection[str] | None) -> None:
        super().__init__(text)
        self.known = known
        self.text = text
        self.result = Module(hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16])
        self.files: dict[int, str] = {}
        self.location: Location | None = None
        self.places: dict[tuple[str, int, int], Location] = {}
        self.pending_labels: list[str] = []
        self.branch_targets: dict[str, tuple[str, ...]] = {}

    # -- module level ---------------------------------------------------------

    def module(self) -> Module:
        self.heading()
        linkage: set[str] = set()
        while self.tokens[self.at].kind != "end":
            text = self.peek
            if text in _LINKAGE:
                linkage.add(self.next().text)
                continue
            if text in (".entry", ".func"):
                self.function(".extern" in linkage)
            elif text in _SPACES:
                for variable in self.variables(self.result.variables, ".extern" in linkage):
                    self.result.variables[variable.name] = variable
            else:
                self.directive()
            linkage.clear()
        return self.result

    def heading(self) -> None:
        """``.version`` and ``.target``, which come first, and ``.address_size``."""
        self.result.version = self.headline(".version", r"\d{1,4}\.\d{1,4}")
        while not self.result.target or self.peek == ".target":
            self.result.target = self.headline(".target", r"(sm|compute)_\w+")
            names = [self.result.target]
            while self.accept(","):
                names.append(self.next().text)
            self.result.unoptimised |= "debug" in names
            if why := refusal(self.result.version, names):
                self.at -= 1
                self.fail(why)
        if self.accept(".address_size") and (size := self.integer()) != 64:
            self.at -= 1
            self.fail(f".address_size {size}: a 64-bit GPU's addresses have 64 bits")

    def directive(self) -> None:
        token = self.next()
        if token.text == ".file":
            self.file()
        elif token.text.startswith(".section"):
            while self.peek != "{":
                self.next()
            self.skip_braces()
        elif token.text in (".pragma", ".alias"):
            self.skip_statement()
        else:
            raise PtxError(f"PTX line {token.line}: cannot read {token.text!r} here")

    def file(self) -> None:
        number, name = self.integer(), self.next()
        if name.kind != "string":
            raise PtxError(f"PTX line {name.line}: expected a file's name, found {name.text!r}")
        self.files[number] = plain_name(unquoted(name.text))
        while self.accept(","):  # time and size
            self.integer()

    # -- functions ------------------------------------------------------------

    def function(self, external: bool) -> None:
        is_entry = self.next().text == ".entry"
        results = self.param_list() if not is_entry and self.peek == "(" else ()
        name = self.name()
        params = self.param_list() if self.peek == "(" else ()
        function = Function(name, is_entry, params, results)
        self.same_as_before(function, external)
        said = False
        while self.peek not in ("{", ";"):
            if self.accept(".pragma"):
                self.skip_statement()
                continue
            token = self.next()
            extents = self.extents()
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
            how = "declared after its definition" if self.peek == ";" else "defined twice"
            self.fail(f"the function {name!r} is {how}")
        if self.accept(";"):
            return
        start = self.at
        self.skip_braces()
        function.read_body = lambda: self.body(function, start)
        self.result.functions[name] = function

    def body(self, function: Function, start: int) -> None:
        """Read a function's body, which is done for those functions only that are called."""
        self.at = start
        self.location = None
        self.places = {}
        self.current = function
        self.expect("{")
        params = (*function.params, *function.results)
        self.scopes = [{(name := p.register or p.name): name for p in params}]
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
        while not self.accept("}"):
            token = self.tokens[self.at]
            if token.kind == "end":
                self.fail("the text ends inside a function")
            text = token.text
            if self.accept("{"):
                self.enter(len(self.scopes) + 1)
                self.open_scope()
                self.block(function)
                self.scopes.pop()
            elif text == ".reg":
                self.register_declaration(function)
            elif text in _SPACES:
                for variable in self.variables(None):
                    variable.name = self.declare(variable.name)
                    function.variables[variable.name] = variable
            elif text == ".loc":
                self.next()
                self.loc(function)
            elif text.startswith("."):
                self.directive()
            elif self.tokens[self.at + 1].text == ":" and token.kind == "word":
                self.at += 2
                label = self.declare_label(text)
                if self.peek == ".branchtargets":
                    self.next()
                    names = [self.resolve(self.name())]
                    while self.accept(","):
                        names.append(self.resolve(self.name()))
                    self.expect(";")
                    self.branch_targets[label] = tuple(names)
                elif self.peek in (".callprototype", ".calltargets"):
                    self.prototype(label)
                else:
                    self.pending_labels.append(label)
            else:
                self.instruction(function)

    def loc(self, function: Function) -> None:
        name, line, column = self.position()
        inlined = None
        while self.accept(","):
            if self.accept("function_name"):
                self.name()
                if self.accept("+"):
                    self.integer()
            else:
                self.expect("inlined_at")
                inlined = self.inlined_parent(*self.position())
        if line == 0:  # compiler-made code: keep the last real line
            return
        self.location = Location(name, line, column, inlined)
        self.places[name, line, column] = self.location
        function.location = function.location or self.location

    def position(self) -> tuple[str, int, int]:
        """A file, a line and a column."""
        found = file, line, column = self.integer(), self.integer(), self.integer()
        if min(found) < 0 or max(found) >= _LINES:
            self.at -= 1
            self.fail(".loc needs a file, a line and a column")
        return self.files.get(file, f"file {file}"), line, column

    def inlined_parent(self, name: str, line: int, column: int) -> Location:
        """The call site; its own inlining is what was last said of that place."""
        for here in self.location.chain if self.location else ():
            if here.file == name and here.line == line and here.column == column:
                return here
        return self.places.get((name, line, column)) or Location(name, line, column)

    # -- instructions ---------------------------------------------------------

    def instruction(self, function: Function) -> None:
        guard = None
        first = token = self.tokens[self.at]
        if token.text.startswith("@"):
            self.next()
            word, negated = token.text[1:], False
            if not word:
                negated, word = self.accept("!"), self.name()
            guard = Reg(self.resolve(word), negated)
        token = self.next()
        if token.kind != "word":
            raise PtxError(f"PTX line {token.line}: expected an instruction, found {token.text!r}")
        opcode, *modifiers = token.text.split(".")
        while self.tokens[self.at].kind == "word" and self.peek.startswith("."):
            modifiers += self.next().text[1:].split(".")
        made = Instruction(opcode, tuple(modifiers), (), guard, first.line, self.location)
        made.at = first.at
        if opcode == "call":
            self.call(made)
        elif self.known is not None and opcode not in self.known:
            self.skip_statement()  # refused when a kernel reaches it, by its name
        else:
            made.operands = tuple(self.operands())
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
            self.fail("a branch needs a label")
        return operand.name  # type: ignore[union-attr]

    def call(self, made: Instruction) -> None:
        if self.accept("("):
            made.results = self.results()
            self.expect(",")
        target = self.name()
        made.targets = (self.resolve(target),)
        pointer = made.targets[0] in self.current.registers
        if not pointer and self.declared.get(target, (self.at,))[0] >= self.at:
            self.fail(f"the function {target!r} is called, and not declared before")
        more = self.accept(",")
        if more and self.accept("("):
            made.operands, more = self.passed(), self.accept(",")
        made.targets += (self.signature(more),) if pointer else ()
        self.skip_statement()
