"""Random expressions of CUDA C++, by type."""

from tests.fuzz.tree import Draw

UNSIGNED = {
    "signed char": "unsigned", "unsigned char": "unsigned", "short": "unsigned",
    "unsigned short": "unsigned", "int": "unsigned", "unsigned": "unsigned",
    "long long": "unsigned long long", "unsigned long long": "unsigned long long",
}  # fmt: skip
"""In which type a type's sums wrap."""
BITS = {"signed char": 8, "unsigned char": 8, "short": 16, "unsigned short": 16, "int": 32,
        "unsigned": 32, "long long": 64, "unsigned long long": 64}  # fmt: skip
INTEGERS = tuple(BITS)
VARIABLES = {
    "int": "i", "unsigned": "u", "long long": "l", "unsigned long long": "w", "short": "h",
    "unsigned short": "k", "signed char": "c", "unsigned char": "b", "float": "f", "double": "d",
    "__half": "x",
}  # fmt: skip
COUNT = 3
"""Variables of each type."""
CONSTANTS = {
    "int": ["0", "1", "-1", "7", "31", "32", "0x7fffffff", "(int)0x80000000", "255", "-129"],
    "unsigned": ["0u", "1u", "0xffffffffu", "0x80000000u", "33u", "65535u", "65536u"],
    "long long": ["0ll", "-1ll", "1ll << 32", "0x7fffffffffffffffll", "(long long)(1ull << 63)",
                  "-4294967296ll", "63ll"],
    "unsigned long long": ["0ull", "~0ull", "1ull << 63", "0xffffffffull", "3ull"],
    "short": ["0", "-1", "32767", "-32768", "255"], "unsigned short": ["0", "65535", "256"],
    "signed char": ["0", "-128", "127", "-1"], "unsigned char": ["0", "255", "128"],
    "float": ["0.0f", "-0.0f", "1.0f", "0.1f", "-2.5f", "3e38f", "1e-40f", "16777217.0f"],
    "double": ["0.0", "-0.0", "1.0", "0.1", "-2.5", "1e300", "1e-310", "9007199254740993.0"],
}  # fmt: skip


class Terms:
    """Draws expressions."""

    def __init__(self, rng: Draw) -> None:
        self.rng = rng
        self.functions: list[str] = []
        self.arrays = True

    def variable(self, kind: str) -> str:
        return f"{VARIABLES[kind]}{self.rng.randrange(COUNT)}"

    def integer_kind(self) -> str:
        return self.rng.choices(INTEGERS, (1, 1, 1, 1, 4, 4, 4, 4))[0]

    def any_kind(self) -> str:
        return self.rng.choices([*INTEGERS, "float", "double", "__half"],
                                (1, 1, 1, 1, 4, 3, 4, 4, 3, 2, 1))[0]  # fmt: skip

    def expression(self, kind: str, depth: int = 2) -> str:
        """A term of exactly this type."""
        if kind in BITS:
            return f"({kind})({self.integer(kind, depth)})"
        if kind == "__half":
            return self.half(depth)
        return self.real(kind, depth)

    def integer(self, kind: str, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.chance(0.15):
            return rng.choice(CONSTANTS[kind]) if rng.chance(0.3) else self.variable(kind)
        u, w = UNSIGNED[kind], BITS[kind]
        a = lambda k=kind: self.expression(k, depth - 1)  # noqa: E731
        pick = rng.randrange(16)
        if pick < 4:
            return f"({u}){a()} {rng.choice('+-*')} ({u}){a()}"
        if pick < 6:
            return f"{a()} {rng.choice('&|^')} {a()}"
        if pick == 6:
            shift = f"({self.expression('unsigned', depth - 1)} & {w - 1})"
            return f"({u}){a()} << {shift}" if rng.chance(0.5) else f"{a()} >> {shift}"
        if pick == 7:
            return f"{a()} {rng.choice('/%')} ({kind})({a()} | 1)"
        if pick == 8:
            return f"{self.test(depth - 1)} ? {a()} : {a()}"
        if pick < 11:
            return a(self.integer_kind())
        if pick == 11:
            return f"{rng.choice(['min', 'max'])}({a('int')}, {a('int')})"
        if pick == 12:
            return self.from_real(depth)
        if pick == 13 and self.functions:
            return self.call(depth)
        if pick == 14 and self.arrays:
            if rng.chance(0.5):
                return f"box.{rng.choice('abcd')}"
            return f"loc[{self.expression('unsigned', depth - 1)} & 7]"
        return self.intrinsic(depth)

    def call(self, depth: int) -> str:
        a = lambda k: self.expression(k, depth - 1)  # noqa: E731
        return f"{self.rng.choice(self.functions)}({a('int')}, {a('long long')}, {a('float')}, box)"

    def from_real(self, depth: int) -> str:
        rng = self.rng
        kind = rng.choice(["float", "double"])
        to = rng.choice(["int", "uint", "ll", "ull"])
        mode = rng.choice(["rn", "rz", "ru", "rd"])
        bits = f"__{kind}_as_{'int' if kind == 'float' else 'longlong'}"
        name = bits if rng.chance(0.3) else f"__{kind}2{to}_{mode}"
        return f"{name}({self.expression(kind, depth - 1)})"

    def intrinsic(self, depth: int) -> str:
        rng = self.rng
        i, u, ll, w = (
            lambda k=k: self.expression(k, depth - 1) for k in
            ("int", "unsigned", "long long", "unsigned long long")
        )  # fmt: skip
        return rng.choice([
            lambda: f"__popc({u()})", lambda: f"__clz({i()})", lambda: f"__ffs({i()})",
            lambda: f"__brev({u()})", lambda: f"__popcll({w()})", lambda: f"__clzll({ll()})",
            lambda: f"__brevll({w()})", lambda: f"__byte_perm({u()}, {u()}, {u()})",
            lambda: f"__funnelshift_l({u()}, {u()}, {u()})", lambda: f"__mulhi({i()}, {i()})",
            lambda: f"__funnelshift_rc({u()}, {u()}, {u()})", lambda: f"__umulhi({u()}, {u()})",
            lambda: f"__mul64hi({ll()}, {ll()})", lambda: f"__umul64hi({w()}, {w()})",
            lambda: f"__dp4a({i()}, {i()}, {i()})", lambda: f"__sad({i()}, {i()}, {u()})",
            lambda: f"__ffsll({ll()})", lambda: f"__mul24({i()}, {i()})",
            lambda: f"(({w()} << 32) | {u()})",
            lambda: f"__double2hiint({self.variable('double')})",
            lambda: f"__half_as_ushort({self.half(depth - 1)})", lambda: f"__uhadd({u()}, {u()})",
            lambda: f"(unsigned)({ll()} >> 32)", lambda: f"abs({i()} | 1)",
        ])()  # fmt: skip

    def real(self, kind: str, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.chance(0.2):
            return rng.choice(CONSTANTS[kind]) if rng.chance(0.3) else self.variable(kind)
        single = kind == "float"
        s = "f" if single else ""
        a = lambda k=kind: self.expression(k, depth - 1)  # noqa: E731
        mode = rng.choice(["rn", "rz", "ru", "rd"])
        p = "f" if single else "d"
        return rng.choice([
            lambda: f"({a()} {rng.choice('+-*/')} {a()})",
            lambda: f"__{p}{rng.choice(['add', 'sub', 'mul', 'div'])}_{mode}({a()}, {a()})",
            lambda: f"fma{s}({a()}, {a()}, {a()})", lambda: f"sqrt{s}(fabs{s}({a()}))",
            lambda: f"__{'fmaf' if single else 'fma'}_{mode}({a()}, {a()}, {a()})",
            lambda: f"f{rng.choice(['min', 'max'])}{s}({a()}, {a()})",
            lambda: f"{rng.choice(['floor', 'ceil', 'trunc', 'rint'])}{s}({a()})",
            lambda: f"copysign{s}({a()}, {a()})", lambda: f"(- {a()})",
            lambda: f"({self.test(depth - 1)} ? {a()} : {a()})",
            lambda: f"({kind}){self.expression(self.integer_kind(), depth - 1)}",
            lambda: f"({kind}){a('double' if single else 'float')}",
            lambda: f"__int2{kind}_rn({self.expression('int', depth - 1)})",
            lambda: f"({kind})__half2float({self.half(depth - 1)})",
            lambda: (f"__int_as_float({self.expression('int', depth - 1)})" if single else
                     f"__longlong_as_double({self.expression('long long', depth - 1)})"),
        ])()  # fmt: skip

    def half(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.chance(0.3):
            return self.variable("__half")
        a = lambda: self.half(depth - 1)  # noqa: E731
        mode = rng.choice(["rn", "rz", "ru", "rd"])
        return rng.choice([
            lambda: f"__h{rng.choice(['add', 'sub', 'mul'])}_rn({a()}, {a()})",
            lambda: f"__hfma({a()}, {a()}, {a()})", lambda: f"__hneg({a()})",
            lambda: f"__float2half_{mode}({self.real('float', depth - 1)})",
            lambda: f"__h{rng.choice(['min', 'max'])}({a()}, {a()})",
            lambda: f"__int2half_rn({self.expression('int', depth - 1)})",
            lambda: f"__ushort_as_half({self.expression('unsigned short', depth - 1)})",
        ])()  # fmt: skip

    def test(self, depth: int = 1) -> str:
        """A condition."""
        rng = self.rng
        if depth > 0 and rng.chance(0.25):
            join = rng.choice(["&&", "||"])
            return f"({self.test(depth - 1)} {join} {self.test(depth - 1)})"
        kind = self.any_kind()
        a, b = self.expression(kind, depth), self.expression(kind, depth)
        if kind == "__half":
            return f"__h{rng.choice(['lt', 'gt', 'eq', 'ne', 'le', 'ge'])}({a}, {b})"
        return f"({a} {rng.choice(['<', '>', '<=', '>=', '==', '!='])} {b})"
