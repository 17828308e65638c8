"""cuBLAS, computed by NumPy (cuBLAS, "Using the cuBLAS API"; column-major matrices)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..runtime.calls import UnsupportedCallError
from .calls import Compute, LibraryCall
from .cublas_handles import enter, handle_of
from .numbers import BY_CODE, BY_LETTER, F32, F64, I32, I32_INDEX, I64_INDEX, NumberType

_COMPUTED = {64: F32, 65: F32, 68: F32, 69: F32, 74: F32, 75: F32, 77: F32, 78: F32, 70: F64,
             71: F64, 72: I32, 73: I32}  # fmt: skip
"""By ``cublasComputeType_t``, what alpha and beta are; half products have half scalars (64)."""
_HALF_SCALARS = (64, 65)


# -- level 1 -----------------------------------------------------------------------------


_Level1 = Callable[[LibraryCall, Any, NumberType, Any], Any]


def _level_1(of: _Level1, letter: str, scalar: str = "") -> Compute:
    """A function of vectors: ``of(call, alpha, type, (x, y))``; ``scalar``: the type of alpha."""
    kind, of_alpha = BY_LETTER[letter], BY_LETTER[scalar or letter]
    return lambda call: _vectors(call, of, kind, of_alpha)


def _level_1_ex(of: _Level1) -> Compute:
    """Return a function of vectors with types as arguments; ``x`` and ``y`` have one type."""

    def compute(call: LibraryCall) -> None:
        names = call.arguments
        kinds = {names[name] for name in ("x_type", "y_type") if name in names}
        codes = [names[name] for name in ("alpha_type", "result_type") if name in names]
        if len(kinds) > 1 or any(code not in BY_CODE for code in (*kinds, *codes)):
            raise UnsupportedCallError(f"{call.name} of types {[*kinds, *codes]} has no stand-in")
        kind, scalar = BY_CODE[kinds.pop()], BY_CODE[codes[0]]
        _vectors(call, of, kind, scalar, scalar)

    return compute


def _vectors(
    call: LibraryCall, of: _Level1, kind: NumberType, of_alpha: NumberType,
    of_result: NumberType | None = None,
) -> None:  # fmt: skip
    handle, names = handle_of(call), call.arguments
    alpha = None
    if "alpha" in names:
        alpha = call.scalars("alpha", of_alpha, 1, handle.on_device)[0]
    x = call.vector("x", call["n"], call["incx"], kind)
    y = call.vector("y", call["n"], call["incy"], kind) if "y" in names else None
    made = of(call, alpha, kind, (x, y))
    waits = False
    if "result" in names:
        result, value = made
        call.put_scalars("result", value, of_result or result, handle.on_device)
        waits = not handle.on_device
    call.done(handle.stream, waits)


def _axpy(call: LibraryCall, alpha: Any, kind: NumberType, views: Any) -> None:
    x, y = views
    call.store(y, "y", alpha * call.read(x, kind) + call.read(y, kind), kind)


def _copy(call: LibraryCall, alpha: Any, kind: NumberType, views: Any) -> None:
    x, y = views
    call.store(y, "y", call.read(x, kind), kind)


def _swap(call: LibraryCall, alpha: Any, kind: NumberType, views: Any) -> None:
    first, second = (call.read(view, kind) for view in views)
    call.store(views[0], "x", second, kind)
    call.store(views[1], "y", first, kind)


def _scal(call: LibraryCall, alpha: Any, kind: NumberType, views: Any) -> None:
    call.store(views[0], "x", alpha * call.read(views[0], kind), kind)


def _dot(call: LibraryCall, alpha: Any, kind: NumberType, views: Any) -> Any:
    x, y = (call.read(view, kind) for view in views)
    return kind, np.dot(np.conj(x) if "dotc" in call.name.lower() else x, y)


def _real(kind: NumberType) -> NumberType:
    return F64 if kind.nbytes in (8, 16) and kind.computed in (np.float64, np.complex128) else F32


def _nrm2(call: LibraryCall, alpha: Any, kind: NumberType, views: Any) -> Any:
    return _real(kind), np.linalg.norm(call.read(views[0], kind).astype(np.complex128))


def _parts(x: Any) -> Any:
    """Return the sum of the parts' absolute values, by which BLAS compares complex numbers."""
    return np.abs(x.real) + np.abs(x.imag)


def _asum(call: LibraryCall, alpha: Any, kind: NumberType, views: Any) -> Any:
    return _real(kind), _parts(call.read(views[0], kind)).sum()


def _extreme(find: Callable[[Any], Any]) -> Callable[..., Any]:
    def index(call: LibraryCall, alpha: Any, kind: NumberType, views: Any) -> Any:
        result = I64_INDEX if call.name.endswith("_64") else I32_INDEX
        x = call.read(views[0], kind)
        return result, find(_parts(x)) + 1 if len(x) else 0

    return index


# -- levels 2 and 3 ----------------------------------------------------------------------


def _apply(matrix: Any, operation: int) -> Any:
    return matrix if operation == 0 else matrix.T if operation == 1 else np.conj(matrix.T)


def _scalars(call: LibraryCall, kind: NumberType, *names: str) -> list[Any]:
    on_device = handle_of(call).on_device
    return [call.scalars(name, kind, 1, on_device)[0] for name in names]


def _update(call: LibraryCall, view: Any, name: str, value: Any, beta: Any, of: Any) -> None:
    """Store a value, plus ``beta`` times what was there unless that is 0."""
    if beta != 0:
        value = value + beta * call.read(view, of)
    call.store(view, name, value, of)


def _gemv(letter: str) -> Compute:
    kind = BY_LETTER[letter]

    def compute(call: LibraryCall) -> None:
        alpha, beta = _scalars(call, kind, "alpha", "beta")
        rows, columns = call["m"], call["n"]
        a = call.read(call.matrix("A", rows, columns, call["lda"], kind), kind)
        lengths = (columns, rows) if call["trans"] == 0 else (rows, columns)
        x = call.read(call.vector("x", lengths[0], call["incx"], kind), kind)
        y = call.vector("y", lengths[1], call["incy"], kind, "store")
        _update(call, y, "y", alpha * (_apply(a, call["trans"]) @ x), beta, kind)
        call.done(handle_of(call).stream)

    return compute


def _ger(letter: str) -> Compute:
    kind = BY_LETTER[letter[0]]

    def compute(call: LibraryCall) -> None:
        (alpha,) = _scalars(call, kind, "alpha")
        x = call.read(call.vector("x", call["m"], call["incx"], kind), kind)
        y = call.read(call.vector("y", call["n"], call["incy"], kind), kind)
        a = call.matrix("A", call["m"], call["n"], call["lda"], kind, "store")
        y = np.conj(y) if "gerc" in call.name else y
        _update(call, a, "A", alpha * np.outer(x, y), 1, kind)
        call.done(handle_of(call).stream)

    return compute


def _product(
    call: LibraryCall, kinds: tuple[NumberType, NumberType, NumberType], scalar: NumberType,
    starts: list[tuple[int, int, int]],
) -> None:  # fmt: skip
    """C = alpha op(A) op(B) + beta C, for each triple of addresses."""
    alpha, beta = _scalars(call, scalar, "alpha", "beta")
    m, n, k, ta, tb = (call[name] for name in ("m", "n", "k", "transa", "transb"))
    for a_at, b_at, c_at in starts:
        c = call.matrix("C", m, n, call["ldc"], kinds[2], "store", c_at)
        value: Any = np.zeros((m, n), kinds[2].computed)
        if alpha != 0 and k:
            a_shape, b_shape = ((m, k) if ta == 0 else (k, m)), ((k, n) if tb == 0 else (n, k))
            a = call.read(call.matrix("A", *a_shape, call["lda"], kinds[0], "load", a_at), kinds[0])
            b = call.read(call.matrix("B", *b_shape, call["ldb"], kinds[1], "load", b_at), kinds[1])
            value = alpha * (_apply(a, ta) @ _apply(b, tb))
        _update(call, c, "C", value, beta, kinds[2])
    call.done(handle_of(call).stream)


def _gemm(letter: str) -> Compute:
    kind = BY_LETTER[letter]

    def compute(call: LibraryCall) -> None:
        _product(call, (kind, kind, kind), kind, [(call["A"], call["B"], call["C"])])

    return compute


def _strided(call: LibraryCall, kinds: Any) -> list[tuple[int, int, int]]:
    a, b, c = (
        [call[name] + i * call[stride] * kind.nbytes for i in range(call["count"])]
        for name, stride, kind in zip("ABC", ("strideA", "strideB", "strideC"), kinds, strict=True)
    )
    return list(zip(a, b, c, strict=True))


def _gemm_strided(letter: str) -> Compute:
    kinds = (BY_LETTER[letter],) * 3

    def compute(call: LibraryCall) -> None:
        _product(call, kinds, kinds[0], _strided(call, kinds))

    return compute


def _gemm_batched(letter: str) -> Compute:
    kind = BY_LETTER[letter]

    def compute(call: LibraryCall) -> None:
        tables = [call.read(call.vector(name, call["count"], 1, I64_INDEX), I64_INDEX).tolist()
                  for name in "ABC"]  # fmt: skip
        _product(call, (kind, kind, kind), kind, list(zip(*tables, strict=True)))

    return compute


def _types(call: LibraryCall) -> tuple[NumberType, NumberType, NumberType]:
    codes = [call[name] for name in ("Atype", "Btype", "Ctype")]
    if any(code not in BY_CODE for code in codes):
        raise UnsupportedCallError(f"{call.name} of types {codes} has no stand-in")
    a, b, c = (BY_CODE[code] for code in codes)
    return a, b, c


def _gemm_ex(call: LibraryCall) -> None:
    kinds = _types(call)
    scalar = _COMPUTED.get(call.arguments.get("compute", 68))
    if scalar is None:
        kind = call["compute"]
        raise UnsupportedCallError(f"{call.name} with cublasComputeType_t {kind} has no stand-in")
    if call.arguments.get("compute") in _HALF_SCALARS:
        scalar = BY_LETTER["H"]
    elif np.issubdtype(kinds[2].computed, np.complexfloating):
        scalar = kinds[2]
    starts = [(call["A"], call["B"], call["C"])]
    _product(call, kinds, scalar, _strided(call, kinds) if "count" in call.arguments else starts)


def _geam(letter: str) -> Compute:
    kind = BY_LETTER[letter]

    def compute(call: LibraryCall) -> None:
        alpha, beta = _scalars(call, kind, "alpha", "beta")
        m, n = call["m"], call["n"]
        value = np.zeros((m, n), kind.computed)
        for name, factor, operation in (("A", alpha, "transa"), ("B", beta, "transb")):
            if factor != 0:
                shape = (m, n) if call[operation] == 0 else (n, m)
                view = call.matrix(name, *shape, call[f"ld{name.lower()}"], kind)
                value = value + factor * _apply(call.read(view, kind), call[operation])
        c = call.matrix("C", m, n, call["ldc"], kind, "store")
        call.store(c, "C", value, kind)
        call.done(handle_of(call).stream)

    return compute


def _trsm(letter: str) -> Compute:
    kind = BY_LETTER[letter]

    def compute(call: LibraryCall) -> None:
        (alpha,) = _scalars(call, kind, "alpha")
        m, n, is_left = call["m"], call["n"], call["side"] == 0
        size = m if is_left else n
        a = call.read(call.matrix("A", size, size, call["lda"], kind), kind)
        a = np.tril(a) if call["uplo"] == 0 else np.triu(a)
        if call["diag"] == 1:
            np.fill_diagonal(a, 1)
        a = _apply(a, call["trans"])
        b = call.matrix("B", m, n, call["ldb"], kind)
        right = alpha * call.read(b, kind)
        solved = np.linalg.solve(a, right) if is_left else np.linalg.solve(a.T, right.T).T
        call.store(b, "B", solved, kind)
        call.done(handle_of(call).stream)

    return compute


def _syrk(letter: str) -> Compute:
    kind = BY_LETTER[letter]

    def compute(call: LibraryCall) -> None:
        alpha, beta = _scalars(call, kind, "alpha", "beta")
        n, k, trans = call["n"], call["k"], call["trans"]
        shape = (n, k) if trans == 0 else (k, n)
        a = call.read(call.matrix("A", *shape, call["lda"], kind), kind)
        a = a if trans == 0 else a.T
        c = call.matrix("C", n, n, call["ldc"], kind, "store")
        half = (
            np.tril(np.ones((n, n), bool)) if call["uplo"] == 0 else np.triu(np.ones((n, n), bool))
        )
        value = (alpha * (a @ a.T))[half]
        if beta != 0:
            value = value + beta * kind.decoded(np.array(c))[half]
        whole = np.array(c)
        whole[half] = kind.encoded(value)
        call.store(c, "C", kind.decoded(whole), kind)
        call.done(handle_of(call).stream)

    return compute


# -- the table ---------------------------------------------------------------------------

_AB = "*handle transa transb m:q n:q k:q *alpha *A lda:q *B ldb:q *beta *C ldc:q"
_STRIDED = (
    "*handle transa transb m:q n:q k:q *alpha *A lda:q strideA:q *B ldb:q strideB:q *beta *C ldc:q "
    "strideC:q count:q"
)
_EX = "*handle transa transb m:q n:q k:q *alpha *A Atype lda:q *B Btype ldb:q *beta *C Ctype ldc:q"
_STRIDED_EX = (
    "*handle transa transb m:q n:q k:q *alpha *A Atype lda:q strideA:q *B Btype ldb:q strideB:q "
    "*beta *C Ctype ldc:q strideC:q count:q compute algorithm"
)
_X_EX = "*handle n:q *x x_type incx:q"
_X, _XY = "*handle n:q *x incx:q", "*handle n:q *x incx:q *y incy:q"
_ALPHA_XY = "*handle n:q *alpha *x incx:q *y incy:q"

ROWS: tuple[tuple[str, str, str, Callable[[str], Compute]], ...] = (
    # letters, name after cublas and the letter, parameters, what computes it for a letter
    ("SDCZ", "axpy_v2", _ALPHA_XY, lambda t: _level_1(_axpy, t)),
    ("SDCZ", "copy_v2", _XY, lambda t: _level_1(_copy, t)),
    ("SDCZ", "swap_v2", _XY, lambda t: _level_1(_swap, t)),
    ("SDCZ", "scal_v2", "*handle n:q *alpha *x incx:q", lambda t: _level_1(_scal, t)),
    ("SD", "dot_v2", f"{_XY} *result", lambda t: _level_1(_dot, t)),
    ("CZ", "dotu_v2", f"{_XY} *result", lambda t: _level_1(_dot, t)),
    ("CZ", "dotc_v2", f"{_XY} *result", lambda t: _level_1(_dot, t)),
    ("SD", "nrm2_v2", f"{_X} *result", lambda t: _level_1(_nrm2, t)),
    ("SD", "asum_v2", f"{_X} *result", lambda t: _level_1(_asum, t)),
    ("SDCZ", "gemv_v2", "*handle trans m:q n:q *alpha *A lda:q *x incx:q *beta *y incy:q", _gemv),
    ("SD", "ger_v2", "*handle m:q n:q *alpha *x incx:q *y incy:q *A lda:q", _ger),
    ("CZ", "geru_v2", "*handle m:q n:q *alpha *x incx:q *y incy:q *A lda:q", _ger),
    ("CZ", "gerc_v2", "*handle m:q n:q *alpha *x incx:q *y incy:q *A lda:q", _ger),
    ("SDCZ", "gemm_v2", _AB, _gemm),
    ("H", "gemm", _AB, _gemm),
    ("SDCZH", "gemmStridedBatched", _STRIDED, _gemm_strided),
    ("SDCZH", "gemmBatched", f"{_AB} count:q", _gemm_batched),
    ("SDCZ", "geam", "*handle transa transb m:q n:q *alpha *A lda:q *beta *B ldb:q *C ldc:q",
     _geam),
    ("SDCZ", "trsm_v2", "*handle side uplo trans diag m:q n:q *alpha *A lda:q *B ldb:q", _trsm),
    ("SDCZ", "syrk_v2", "*handle uplo trans n:q k:q *alpha *A lda:q *beta *C ldc:q", _syrk),
)  # fmt: skip
"""Those with a letter for their type; ``:q`` is 64 bits in the variants that end in ``_64``."""

_LEVEL_1_ODD = (
    # name after cublas, letter, letter of alpha, parameters, function
    ("Csscal_v2", "C", "S", "*handle n:q *alpha *x incx:q", _scal),
    ("Zdscal_v2", "Z", "D", "*handle n:q *alpha *x incx:q", _scal),
    ("Scnrm2_v2", "C", "C", f"{_X} *result", _nrm2),
    ("Dznrm2_v2", "Z", "Z", f"{_X} *result", _nrm2),
    ("Scasum_v2", "C", "C", f"{_X} *result", _asum),
    ("Dzasum_v2", "Z", "Z", f"{_X} *result", _asum),
    *(
        (f"I{letter.lower()}{name}_v2", letter, letter, f"{_X} *result", _extreme(find))
        for letter in "SDCZ"
        for name, find in (("amax", np.argmax), ("amin", np.argmin))
    ),
)
_EXTENDED = (
    ("DotEx", f"{_X_EX} *y y_type incy:q *result result_type execution", _level_1_ex(_dot)),
    ("DotcEx", f"{_X_EX} *y y_type incy:q *result result_type execution", _level_1_ex(_dot)),
    ("Nrm2Ex", f"{_X_EX} *result result_type execution", _level_1_ex(_nrm2)),
    ("AxpyEx", "*handle n:q *alpha alpha_type *x x_type incx:q *y y_type incy:q execution",
     _level_1_ex(_axpy)),
    ("ScalEx", "*handle n:q *alpha alpha_type *x x_type incx:q execution", _level_1_ex(_scal)),
    ("GemmEx", f"{_EX} compute algorithm", _gemm_ex),
    ("GemmStridedBatchedEx", _STRIDED_EX, _gemm_ex),
    ("SgemmEx", _EX, _gemm_ex),
)  # fmt: skip


for _letters, _name, _parameters, _make in ROWS:
    for _letter in _letters:
        enter(_letter + _name, _parameters, _make(_letter))
for _name, _letter, _scalar, _parameters, _function in _LEVEL_1_ODD:
    enter(_name, _parameters, _level_1(_function, _letter, _scalar))
for _name, _parameters, _compute in _EXTENDED:
    enter(_name, _parameters, _compute)
