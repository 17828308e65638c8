"""cuSPARSE: products of CSR, CSC and COO matrices by NumPy (cuSPARSE, "Generic API")."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..runtime.calls import UnsupportedCallError
from .calls import CallFailedError, Compute, Library, LibraryCall, setting
from .handle_calls import option_getter, option_setter, status_text, version
from .numbers import BY_CODE, I32_INDEX, I64_INDEX, NumberType

NOT_INITIALIZED, INVALID_VALUE, EXECUTION_FAILED = 1, 3, 6
"""Of ``cusparseStatus_t``."""
LIBRARY = Library("cuSPARSE", EXECUTION_FAILED)
VERSION = 12600
_INDICES = {2: I32_INDEX, 3: I64_INDEX}
"""By ``cusparseIndexType_t``."""
_ROW_MAJOR, _CONJUGATE = 2, 2
"""Of ``cusparseOrder_t`` and ``cusparseOperation_t``."""
_STATUSES = {
    0: "CUSPARSE_STATUS_SUCCESS", 1: "CUSPARSE_STATUS_NOT_INITIALIZED",
    2: "CUSPARSE_STATUS_ALLOC_FAILED", 3: "CUSPARSE_STATUS_INVALID_VALUE",
    4: "CUSPARSE_STATUS_ARCH_MISMATCH", 6: "CUSPARSE_STATUS_EXECUTION_FAILED",
    7: "CUSPARSE_STATUS_INTERNAL_ERROR", 10: "CUSPARSE_STATUS_NOT_SUPPORTED",
    11: "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
}  # fmt: skip


class SparseHandle:
    """A ``cusparseHandle_t``."""

    def __init__(self) -> None:
        self.stream, self.pointer_mode = 0, 0


@dataclass
class SparseMatrix:
    """A sparse matrix in the device's memory.

    Attributes:
        form: ``csr``, ``csc`` or ``coo``.
        first: Address of the row offsets (CSR), column offsets (CSC) or row indices (COO).
        second: Address of the other indices; ``values``: of the elements.
        types: Of the first and second indices; ``of``: of the elements.
        base: Index of the first row and column.
    """

    form: str
    rows: int
    columns: int
    count: int
    first: int
    second: int
    values: int
    types: tuple[NumberType, NumberType]
    of: NumberType
    base: int


@dataclass
class DenseArray:
    """A vector (one column) or matrix in the device's memory; ``order``: of its elements."""

    rows: int
    columns: int
    leading: int
    values: int
    of: NumberType
    order: int = 1

    def view(self, call: LibraryCall, name: str, how: str) -> Any:
        """Return the elements, ``(rows, columns)``."""
        steps = (self.leading, 1) if self.order == _ROW_MAJOR else (1, self.leading)
        shape = self.rows, self.columns
        return call.view(name, shape, steps, self.of, how, self.values)


def _found(call: LibraryCall, name: str, kind: type) -> Any:
    found = call.runtime.libraries.handles.get(call[name])
    if not isinstance(found, kind):
        raise CallFailedError(NOT_INITIALIZED if kind is SparseHandle else INVALID_VALUE)
    return found


def _type(call: LibraryCall, code: int) -> NumberType:
    if code not in BY_CODE:
        raise UnsupportedCallError(f"{call.name} of cudaDataType {code} has no stand-in")
    return BY_CODE[code]


def _indices(call: LibraryCall, code: int) -> NumberType:
    if code not in _INDICES:
        raise UnsupportedCallError(f"{call.name} with cusparseIndexType_t {code} has no stand-in")
    return _INDICES[code]


# -- descriptors -------------------------------------------------------------------------


@setting
def _create(call: LibraryCall) -> None:
    call.put("handle", call.runtime.libraries.add(SparseHandle()))


@setting
def _destroy(call: LibraryCall) -> None:
    if call.runtime.libraries.handles.pop(call["handle"], None) is None:
        raise CallFailedError(INVALID_VALUE)


def _handle(call: LibraryCall) -> Any:
    return _found(call, "handle", SparseHandle)


def _sparse(form: str) -> Compute:
    @setting
    def compute(call: LibraryCall) -> None:
        second = call.arguments.get("second_type", call["first_type"])
        types = _indices(call, call["first_type"]), _indices(call, second)
        made = SparseMatrix(
            form, call["rows"], call["columns"], call["count"], call["first"], call["second"],
            call["values"], types, _type(call, call["type"]), call["base"],
        )  # fmt: skip
        call.put("out", call.runtime.libraries.add(made))

    return compute


@setting
def _vector(call: LibraryCall) -> None:
    made = DenseArray(call["size"], 1, call["size"], call["values"], _type(call, call["type"]))
    call.put("out", call.runtime.libraries.add(made))


@setting
def _matrix(call: LibraryCall) -> None:
    made = DenseArray(
        call["rows"], call["columns"], call["leading"], call["values"], _type(call, call["type"]),
        call["order"],
    )  # fmt: skip
    call.put("out", call.runtime.libraries.add(made))


@setting
def _set_values(call: LibraryCall) -> None:
    _found(call, "dense", DenseArray).values = call["values"]


@setting
def _set_pointers(call: LibraryCall) -> None:
    found = _found(call, "sparse", SparseMatrix)
    found.first, found.second, found.values = call["first"], call["second"], call["values"]


@setting
def _buffer_size(call: LibraryCall) -> None:
    call.put("size", 0)


@setting
def _nothing(call: LibraryCall) -> None:
    _handle(call)


# -- products ----------------------------------------------------------------------------


def _elements(call: LibraryCall, it: SparseMatrix) -> tuple[Any, Any, Any]:
    """Row, column and value of each element; the indices are checked."""
    major = {"csr": it.rows, "csc": it.columns}.get(it.form)
    counts = it.count if major is None else major + 1
    first = call.read(call.vector("A", counts, 1, it.types[0], "load", it.first), it.types[0])
    minor = call.read(call.vector("A", it.count, 1, it.types[1], "load", it.second), it.types[1])
    values = call.read(call.vector("A", it.count, 1, it.of, "load", it.values), it.of)
    first, minor = first - it.base, minor - it.base
    lengths = np.diff(first)
    if major is None:
        outer = first
    elif first[0] == 0 and first[-1] == it.count and not (lengths < 0).any():
        outer = np.repeat(np.arange(major), lengths)
    else:
        outer = np.full(it.count, -1)
    rows, columns = (minor, outer) if it.form == "csc" else (outer, minor)
    for indices, extent in ((rows, it.rows), (columns, it.columns)):
        if len(indices) and (indices.min() < 0 or indices.max() >= extent):
            shape = f"{it.rows:,} x {it.columns:,} in {it.form.upper()}"
            problem = f"A, {shape}, has indices outside of it"
            call.runtime.checks.bad_copy(call.runtime.source, call.name, problem)
            raise CallFailedError(EXECUTION_FAILED)
    return rows, columns, values


def _product(call: LibraryCall) -> None:
    handle, it = _handle(call), _found(call, "A", SparseMatrix)
    b, c = (_found(call, name, DenseArray) for name in "BC")
    of = _type(call, call["compute"])
    on_device = handle.pointer_mode == 1
    alpha, beta = (call.scalars(name, of, 1, on_device)[0] for name in ("alpha", "beta"))
    rows, columns, values = _elements(call, it)
    shape = it.rows, it.columns
    if call["transa"]:
        rows, columns, shape = columns, rows, shape[::-1]
        values = np.conj(values) if call["transa"] == _CONJUGATE else values
    right = call.read(b.view(call, "B", "load"), b.of)
    if transb := call.arguments.get("transb", 0):
        right = np.conj(right.T) if transb == _CONJUGATE else right.T
    target = c.view(call, "C", "store")
    if shape[1] != right.shape[0] or target.shape != (shape[0], right.shape[1]):
        raise CallFailedError(INVALID_VALUE)
    value: Any = np.zeros(target.shape, np.result_type(values, right))
    np.add.at(value, rows, values[:, None] * right[columns])
    value = alpha * value
    if beta != 0:
        value = value + beta * call.read(target, c.of)
    call.store(target, "C", value, c.of)
    call.done(handle.stream)


def _to_dense(call: LibraryCall) -> None:
    handle, it = _handle(call), _found(call, "A", SparseMatrix)
    c = _found(call, "C", DenseArray)
    if (it.rows, it.columns) != (c.rows, c.columns):
        raise CallFailedError(INVALID_VALUE)
    rows, columns, values = _elements(call, it)
    target = c.view(call, "C", "store")
    value = np.zeros(target.shape, c.of.computed)
    value[rows, columns] = values
    call.store(target, "C", value, c.of)
    call.done(handle.stream)


_SPARSE = "*out rows:q columns:q count:q *first *second *values first_type second_type base type"
_COO = "*out rows:q columns:q count:q *first *second *values first_type base type"
_DENSE = "*out rows:q columns:q leading:q *values type order"
_SPMV = "*handle transa *alpha *A *B *beta *C compute algorithm"
_SPMM = "*handle transa transb *alpha *A *B *beta *C compute algorithm"
ROWS: tuple[tuple[str, str, Compute], ...] = (
    ("Create", "*handle", _create),
    ("Destroy", "*handle", _destroy),
    ("SetStream", "*handle value:q", option_setter(_handle, "stream")),
    ("GetStream", "*handle *out", option_getter(_handle, "stream", 8)),
    ("SetPointerMode", "*handle value", option_setter(_handle, "pointer_mode")),
    ("GetPointerMode", "*handle *out", option_getter(_handle, "pointer_mode", 4)),
    ("GetVersion", "*handle *out", version(VERSION)),
    ("GetErrorString", "status", status_text(_STATUSES)),
    ("GetErrorName", "status", status_text(_STATUSES)),
    ("CreateCsr", _SPARSE, _sparse("csr")),
    ("CreateConstCsr", _SPARSE, _sparse("csr")),
    ("CreateCsc", _SPARSE, _sparse("csc")),
    ("CreateConstCsc", _SPARSE, _sparse("csc")),
    ("CreateCoo", _COO, _sparse("coo")),
    ("CreateConstCoo", _COO, _sparse("coo")),
    ("CreateDnVec", "*out size:q *values type", _vector),
    ("CreateConstDnVec", "*out size:q *values type", _vector),
    ("CreateDnMat", _DENSE, _matrix),
    ("CreateConstDnMat", _DENSE, _matrix),
    ("DnVecSetValues", "*dense *values", _set_values),
    ("DnMatSetValues", "*dense *values", _set_values),
    ("CsrSetPointers", "*sparse *first *second *values", _set_pointers),
    ("CscSetPointers", "*sparse *first *second *values", _set_pointers),
    ("CooSetPointers", "*sparse *first *second *values", _set_pointers),
    ("DestroySpMat", "*handle", _destroy),
    ("DestroyDnVec", "*handle", _destroy),
    ("DestroyDnMat", "*handle", _destroy),
    ("SpMV_bufferSize", f"{_SPMV} *size", _buffer_size),
    ("SpMV_preprocess", f"{_SPMV} *buffer", _nothing),
    ("SpMV", f"{_SPMV} *buffer", _product),
    ("SpMM_bufferSize", f"{_SPMM} *size", _buffer_size),
    ("SpMM_preprocess", f"{_SPMM} *buffer", _nothing),
    ("SpMM", f"{_SPMM} *buffer", _product),
    ("SparseToDense_bufferSize", "*handle *A *C algorithm *size", _buffer_size),
    ("SparseToDense", "*handle *A *C algorithm *buffer", _to_dense),
)

for _name, _parameters, _compute in ROWS:
    LIBRARY.enter(f"cusparse{_name}", _parameters, _compute)
