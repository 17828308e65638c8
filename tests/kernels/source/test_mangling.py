"""Names in mangled symbols, as messages have them."""

import pytest

from kernels.source.mangling import plain_symbol


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("printf", "printf"),
        ("_Z5scaleIfEvPT_i", "scale"),
        ("_ZN3c106detail14torchCheckFailEPKcS2_jS2_", "c10::detail::torchCheckFail"),
        ("_ZNK2at6Tensor5itemsIfEET_v", "at::Tensor::items"),
        ("_ZN2at6TensorC1Ev", "at::Tensor"),  # a constructor
        ("_ZNK2at6TensorplERKS0_", "at::Tensor"),  # operator+
        ("_ZN1a1bIXadL_ZN1c1dEvEEE1eEv", "a::b::e"),
        ("_ZTIN2at6TensorE", "_ZTIN2at6TensorE"),  # type information
        ("_ZN99short", "_ZN99short"),
    ],
)
def test_names(symbol: str, name: str) -> None:
    assert plain_symbol(symbol) == name
