"""Operations of networks: their compiled and their plain way give the same values and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from kernels import heads, tensors
from kernels.heads import (
    NoisyLayer,
    active_columns,
    gated_hidden,
    noisy_linear,
    plain_gated_hidden,
    plain_noisy_linear,
)
from tests.kernel_choice import using

BFLOAT16_STEP = 2**-8  # of two numbers that round to neighbours


@contextmanager
def small_is_large(threads: int = 1) -> Iterator[None]:
    """Loops take layers and products however small, in one share or two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensors, "LEAST_NUMBERS", 1)
        patch.setattr(heads, "LEAST_WEIGHTS", 1)
        patch.setattr(heads, "LEAST_ROWS", 1)
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


class Case:
    """Inputs of both operations: x or features with columns of zeros, some numbers that are none."""

    def __init__(self, seed: int, batch: int, samples: int, inputs: int, outputs: int, streams: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        shapes = [(streams * outputs, inputs)] * 2 + [(streams * outputs,)] * 2
        self.parameters = tuple(self.drawn(*shape) for shape in shapes)
        self.x = self.drawn(batch, samples, inputs)
        self.made_of = self.drawn(batch, inputs)
        with torch.no_grad():
            self.made_of[:, torch.rand(inputs, generator=self.generator) < 0.5] = -1
        self.features = functional.relu(self.made_of)
        self.cosines = self.drawn(batch, samples, 3).detach()
        self.embedding = self.drawn(inputs, 3), self.drawn(inputs)
        self.sizes = streams * inputs, streams * outputs
        self.grad = self.drawn(batch, samples, streams * outputs).detach()

    def drawn(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator).requires_grad_()

    def layer(self, rows: int) -> NoisyLayer:
        """With noise drawn anew."""
        return NoisyLayer(*self.parameters, *(self.drawn(rows, size).detach() for size in self.sizes))

    def noisy(self, operation: Callable[..., Tensor], layer: NoisyLayer) -> tuple[Tensor, ...]:
        found = operation(self.x, layer)
        return found, *torch.autograd.grad(found, (self.x, *self.parameters), self.grad.to(found.dtype))

    def gated(self, operation: Callable[..., Tensor], layer: NoisyLayer) -> tuple[Tensor, ...]:
        found = operation(self.features, self.cosines, self.embedding, layer)
        parts = (self.made_of, *self.embedding, *self.parameters)
        return found, *torch.autograd.grad(found, parts, self.grad.to(found.dtype), retain_graph=True)


CASES = st.builds(
    Case,
    seed=st.integers(0, 2**32),
    batch=st.integers(0, 4),
    samples=st.integers(1, 4),
    inputs=st.integers(1, 70),
    outputs=st.integers(1, 5),
    streams=st.integers(1, 2),
)


def close(found: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4, equal_nan=True)


@settings(max_examples=40, deadline=None)
@given(CASES, st.booleans(), st.integers(1, 2))
def test_a_noisy_layer_is_the_plain_one(case: Case, shared: bool, threads: int) -> None:
    layer = case.layer(1 if shared else len(case.x))
    with small_is_large(threads):
        found = case.noisy(noisy_linear, layer)
    close(found, case.noisy(plain_noisy_linear, layer))
    with using("plain"):
        again = case.noisy(noisy_linear, layer)
    assert all(map(torch.equal, again, case.noisy(plain_noisy_linear, layer)))


@settings(max_examples=40, deadline=None)
@given(CASES, st.booleans(), st.integers(1, 2))
def test_a_gated_hidden_layer_is_the_plain_one(case: Case, shared: bool, threads: int) -> None:
    layer = case.layer(1 if shared else len(case.x))
    with small_is_large(threads):
        found = case.gated(gated_hidden, layer)
    close(found, case.gated(plain_gated_hidden, layer))
    with using("plain"):
        again = case.gated(gated_hidden, layer)
    assert all(map(torch.equal, again, case.gated(plain_gated_hidden, layer)))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("part", ["features", "bias", "mu_w"])
def test_what_is_no_number_shows(part: str, shared: bool) -> None:
    """A network that has diverged must not look sound: wherever the plain way shows it."""
    case = Case(1, batch=3, samples=2, inputs=40, outputs=4, streams=2)
    with torch.no_grad():
        case.made_of[:, 2] = 1.0
        {"features": case.made_of[0], "bias": case.embedding[1], "mu_w": case.parameters[0][0]}[part][2] = (
            torch.nan
        )
    case.features = functional.relu(case.made_of)
    layer = case.layer(1 if shared else 3)
    with small_is_large():
        found = case.gated(gated_hidden, layer)
    wanted = case.gated(plain_gated_hidden, layer)
    assert torch.equal(found[0].isnan(), wanted[0].isnan()) and found[0].isnan().any()
    assert any(gradient.isnan().any() for gradient in found[1:])


@settings(max_examples=20, deadline=None)
@given(CASES, st.booleans())
def test_bfloat16_is_near(case: Case, shared: bool) -> None:
    layer = case.layer(1 if shared else len(case.x))
    wanted = case.gated(plain_gated_hidden, layer)
    with small_is_large(), torch.autocast("cpu", torch.bfloat16):
        found = case.gated(gated_hidden, layer)
    assert found[0].dtype == (torch.bfloat16 if len(layer.eps_in) == 1 else torch.float32)
    assert {part.dtype for part in found[1:]} == {torch.float32}
    size = float(wanted[0].detach().abs().max()) if wanted[0].numel() else 0.0
    torch.testing.assert_close(found[0].float(), wanted[0], rtol=0, atol=12 * BFLOAT16_STEP * (1 + size))
    assume(torch.equal(found[0] > 0, wanted[0] > 0))  # at its bend a ReLU may pass but one gradient
    for own, other in zip(found[1:], wanted[1:], strict=True):
        if other.norm() > 1e-3:
            assert functional.cosine_similarity(own.flatten(), other.flatten(), dim=0) > 0.9
            assert 0.8 < own.norm() / other.norm() < 1.25


def test_a_weight_in_bfloat16_is_the_nearest() -> None:
    """Ties, infinities, numbers beyond the greatest and below the least, negative zero; NaN stays NaN."""
    bits = torch.tensor([0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0x7F800000, 1, -(2**31), 0x7FFFFFFF])
    mu = torch.cat((bits.to(torch.int32).view(torch.float32), torch.tensor([-torch.inf, torch.nan])))
    zeros, noise = torch.zeros(len(mu)), (torch.zeros(1, 1), torch.zeros(1, len(mu)))
    layer = NoisyLayer(mu.unsqueeze(1), zeros.unsqueeze(1), zeros, zeros, *noise)
    with small_is_large(), torch.autocast("cpu", torch.bfloat16):
        weight = noisy_linear(torch.ones(1, 1, 1), layer)[0, 0]
    assert torch.equal(weight[:-3], (mu[:-3] + 0).bfloat16()) and weight[-2] == -torch.inf
    assert weight[-1].isnan() and weight[-3].isnan()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_precisions_are_pytorchs(dtype: torch.dtype) -> None:
    """Their bits are not taken for those of float32."""
    case = Case(2, batch=3, samples=2, inputs=40, outputs=4, streams=2)
    layer = NoisyLayer(*(part.detach().to(dtype) for part in case.layer(1)))
    parts = case.features, case.cosines, *case.embedding
    features, cosines, weight, bias = (part.detach().to(dtype) for part in parts)
    inputs = features, cosines, (weight, bias), layer
    with small_is_large():
        found = gated_hidden(*inputs)
    assert found.dtype == dtype and torch.equal(found, plain_gated_hidden(*inputs))


def test_sizes_of_another_layer_are_refused() -> None:
    """Compiled loops would read what is not theirs."""
    mu, bias = torch.zeros(2, 3), torch.zeros(2)
    layer = NoisyLayer(mu, mu, bias, bias, torch.zeros(1, 3), torch.zeros(1, 2))
    for eps_in, eps_out in (
        ((1, 2), (1, 2)),
        ((1, 3), (1, 1)),
        ((1, 9), (1, 2)),
        ((1, 3), (2, 2)),
        ((1, 0), (1, 2)),
    ):
        other = layer._replace(eps_in=torch.zeros(eps_in), eps_out=torch.zeros(eps_out))
        for columns in (None, torch.arange(3)):
            with pytest.raises(ValueError, match="is not for a layer"):
                noisy_linear(torch.zeros(2, 1, 3), other, columns)
    with pytest.raises(ValueError, match="is not for a layer"):
        noisy_linear(torch.zeros(2, 1, 3), layer._replace(sigma_w=torch.zeros(2, 1)))
    for features, embedded, biases in ((3, 4, 4), (4, 3, 4), (4, 5, 4)):
        embedding = torch.zeros(embedded, 5), torch.zeros(biases)
        with pytest.raises(ValueError, match="do not belong together"):
            gated_hidden(torch.zeros(2, features), torch.zeros(2, 1, 5), embedding, layer)


@pytest.mark.parametrize("operation", ["noisy", "gated"])
def test_gradients_of_gradients_are_refused(operation: str) -> None:
    case = Case(3, batch=3, samples=2, inputs=40, outputs=4, streams=1)
    with small_is_large():
        if operation == "noisy":
            output, part = noisy_linear(case.x, case.layer(1)), case.parameters[1]
        else:
            output = gated_hidden(case.features, case.cosines, case.embedding, case.layer(1))
            part = case.embedding[0]
        (first,) = torch.autograd.grad(output.square().sum(), part, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.backward(first.sum())


def test_one_row_of_taus_serves_all_features() -> None:
    case = Case(4, batch=3, samples=2, inputs=40, outputs=4, streams=2)
    layer = case.layer(1)
    one, many = (
        gated_hidden(case.features, cosines, case.embedding, layer)
        for cosines in (case.cosines[:1], case.cosines[:1].repeat(3, 1, 1))
    )
    assert torch.equal(one, many)


def test_active_columns_are_not_0_in_some_row() -> None:
    features = torch.zeros(2, 100)
    features[0, 10:20], features[1, 15:43] = 1.0, -2.0  # 33 of them: 64 with those that fill the lanes
    columns = active_columns(features, heads.LEAST_ROWS)
    assert columns is not None and len(columns) == 64
    assert set(range(10, 43)) <= set(columns.tolist()) and columns.tolist() == sorted(set(columns.tolist()))
    features[1, 3:] = torch.nan  # not 0 either
    assert active_columns(features, heads.LEAST_ROWS) is None  # 97 of 100
    assert active_columns(torch.zeros(2, 100), heads.LEAST_ROWS - 1) is None


def test_no_active_column_is_still_a_product() -> None:
    columns = active_columns(torch.zeros(2, 100), heads.LEAST_ROWS)
    assert columns is not None and len(columns) == 32


@pytest.mark.parametrize(("rows_of_noise", "products"), [(1, 1), (2, 2)])
def test_columns_are_chosen_for_products_that_are_large(
    rows_of_noise: int, products: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row with noise of its own takes two, with means and with deviations. Independent rows: never."""
    case, found = Case(5, batch=2, samples=3, inputs=40, outputs=4, streams=2), list[int]()
    monkeypatch.setattr(heads, "active_columns", lambda _, product_rows: found.append(product_rows))
    layer = case.layer(rows_of_noise)
    for independent_rows in (False, True):
        gated_hidden(case.features, case.cosines, case.embedding, layer, independent_rows)
    assert found == [2 * 3 * products]


def test_loops_are_for_large_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "LEAST_WEIGHTS", 12)
    built, loop = list[int](), tensors.in_shares

    def recorded(*parts: Any, **sizes: int) -> None:
        built.append(sizes["rows"])
        loop(*parts, rows=sizes["rows"], numbers=sizes["numbers"])

    monkeypatch.setattr(heads, "in_shares", recorded)
    for outputs in (2, 3):
        shapes = [(outputs, 4)] * 2 + [(outputs,)] * 2 + [(1, 4), (1, outputs)]
        layer = NoisyLayer(*(torch.ones(*shape) for shape in shapes))
        y = noisy_linear(torch.ones(1, 1, 4), layer)
        assert torch.equal(y, torch.full((1, 1, outputs), 10.0))
    assert built == [3]
