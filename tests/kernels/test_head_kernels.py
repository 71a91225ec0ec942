"""Compiled loops against what PyTorch makes of the same formulas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from kernels import noisy_weight as weights
from kernels import shares as loops
from kernels import tau_gate
from kernels.noisy_weight import columns_of, noisy_weight
from kernels.tau_gate import LEAST_ROWS, gated, lit_columns

B, N, F, COSINES = 3, 4, 70, 5
BFLOAT16_STEP = 2**-8  # of two numbers that round to neighbours


@pytest.fixture(params=[1, 2], autouse=True)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One share and two, of layers however small."""
    monkeypatch.setattr(loops, "LEAST_NUMBERS", 1)
    monkeypatch.setattr(weights, "LEAST_WEIGHTS", 1)
    torch.set_num_threads(request.param)
    yield


@pytest.fixture(params=["all", "some"])
def columns(request: pytest.FixtureRequest) -> Tensor | None:
    """None, and every third of them left out."""
    return None if request.param == "all" else torch.tensor([c for c in range(F) if c % 3])


@pytest.fixture(params=["loops", "plain"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of computing: as on a CPU, and as elsewhere."""
    if request.param == "plain":
        for module in (weights, tau_gate):
            monkeypatch.setattr(module, "takes_float_loops", lambda _: False)


def in_bfloat16() -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16)


def parameters(generator: torch.Generator, *shapes: Sequence[int]) -> list[Tensor]:
    return [torch.randn(*shape, generator=generator).requires_grad_() for shape in shapes]


def by_formula(mu: Tensor, sigma: Tensor, eps_in: Tensor, eps_out: Tensor) -> Tensor:
    per_stream = len(mu) // len(eps_in)
    noise = [torch.outer(eps_out[s * per_stream :][:per_stream], own) for s, own in enumerate(eps_in)]
    return mu + sigma * torch.cat(noise)


def kept(tensor: Tensor, dim: int, columns: Tensor | None) -> Tensor:
    return tensor if columns is None else tensor.index_select(dim, columns)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("streams", [1, 2])
def test_a_weight_and_its_gradients(streams: int, columns: Tensor | None, generator: torch.Generator) -> None:
    mu, sigma = parameters(generator, (6, F), (6, F))
    eps_in, eps_out = torch.randn(streams, F, generator=generator), torch.randn(6, generator=generator)
    weight = noisy_weight(mu, sigma, eps_in, eps_out, columns)
    expected = kept(by_formula(mu, sigma, eps_in, eps_out), 1, columns)
    torch.testing.assert_close(weight, expected)
    grad = torch.randn(weight.shape, generator=generator)
    found = torch.autograd.grad(weight, (mu, sigma), grad)
    torch.testing.assert_close(found, torch.autograd.grad(expected, (mu, sigma), grad))


def test_a_weight_in_bfloat16_is_the_nearest(columns: Tensor | None, generator: torch.Generator) -> None:
    mu, sigma = parameters(generator, (6, F), (6, F))
    eps_in, eps_out = torch.randn(1, F, generator=generator), torch.randn(6, generator=generator)
    with in_bfloat16():
        weight = noisy_weight(mu, sigma, eps_in, eps_out, columns)
    assert torch.equal(weight, noisy_weight(mu, sigma, eps_in, eps_out, columns).bfloat16())
    grad = torch.randn(weight.shape, generator=generator).bfloat16()
    mu_grad, sigma_grad = torch.autograd.grad(weight, (mu, sigma), grad)
    assert torch.equal(kept(mu_grad, 1, columns), grad.float())
    torch.testing.assert_close(sigma_grad, mu_grad * torch.outer(eps_out, eps_in[0]))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_columns_of_a_matrix(precision: torch.dtype, generator: torch.Generator) -> None:
    """Rounded once, as the matrix would be; with gradient where one is asked for."""
    matrix = torch.randn(6, F, generator=generator).requires_grad_()
    some = torch.tensor([0, 3, 4, F - 1])
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
        with torch.no_grad():
            chosen = columns_of(matrix, some)
        recorded = columns_of(matrix, some)
    assert torch.equal(chosen.to(precision), matrix.detach()[:, some].to(precision))
    assert torch.equal(recorded, matrix[:, some]) and recorded.requires_grad


@torch.no_grad()
def test_columns_without_gradient_have_the_precision_of_passes(generator: torch.Generator) -> None:
    with in_bfloat16():
        chosen = columns_of(torch.randn(6, F, generator=generator), torch.tensor([0, 3]))
    assert chosen.dtype == torch.bfloat16


def test_numbers_at_the_edges_are_rounded_as_pytorch_does() -> None:
    """Ties, infinities, numbers beyond the greatest and below the least, negative zero; NaN stays NaN."""
    bits = torch.tensor([0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0x7F800000, 1, -(2**31), 0x7FFFFFFF])
    mu = torch.cat((bits.to(torch.int32).view(torch.float32), torch.tensor([-torch.inf, torch.nan])))
    nothing = torch.zeros(1, len(mu))
    with in_bfloat16():
        weight = noisy_weight(mu.unsqueeze(0), nothing, nothing, torch.zeros(1))[0]
    assert torch.equal(weight[:-3], (mu[:-3] + 0).bfloat16()) and weight[-2] == -torch.inf
    assert weight[-1].isnan() and weight[-3].isnan()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_precisions_are_pytorchs(
    dtype: torch.dtype, columns: Tensor | None, generator: torch.Generator
) -> None:
    """Their bits are not taken for those of float32."""
    mu, sigma, eps_in = (torch.randn(4, F, generator=generator).to(dtype) for _ in range(3))
    eps_out = torch.randn(4, generator=generator).to(dtype)
    found = noisy_weight(mu, sigma, eps_in[:2], eps_out, columns)
    assert found.dtype == dtype
    expected = kept(by_formula(mu, sigma, eps_in[:2], eps_out), 1, columns)
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0.05)
    features, cosines, weight = (
        mu,
        torch.randn(4, N, COSINES, generator=generator).to(dtype),
        sigma[:, :COSINES],
    )
    product = gated(features[:, :4], cosines, weight, eps_out)
    expected = features[:, None, :4] * functional.relu(functional.linear(cosines, weight, eps_out))
    assert product.dtype == dtype and torch.equal(product, expected)
    assert lit_columns(torch.zeros(2, 100, dtype=dtype), LEAST_ROWS) is None


def test_sizes_of_another_layer_are_refused() -> None:
    """Compiled loops would read what is not theirs."""
    mu = torch.zeros(2, 3)
    for eps_in, eps_out in (((1, 2), 2), ((1, 3), 1), ((3, 3), 2)):
        with pytest.raises(ValueError, match="not for this layer"):
            noisy_weight(mu, mu, torch.zeros(eps_in), torch.zeros(eps_out))
    with pytest.raises(ValueError, match="of two layers"):
        noisy_weight(mu, torch.zeros(2, 1), torch.zeros(1, 3), torch.zeros(2))
    for features, embedded, biases in ((3, 4, 4), (4, 3, 4), (4, 5, 4)):
        with pytest.raises(ValueError, match="do not belong together"):
            gated(
                torch.zeros(2, features), torch.zeros(2, 1, 5), torch.zeros(embedded, 5), torch.zeros(biases)
            )


class Gate:
    """What goes into one, as a network has it: features that a ReLU made."""

    def __init__(self, generator: torch.Generator) -> None:
        self.made_of, self.weight, self.bias = parameters(generator, (B, F), (F, COSINES), (F,))
        self.features = functional.relu(self.made_of)
        self.cosines = torch.randn(B, N, COSINES, generator=generator)
        self.grad = torch.randn(B, N, F, generator=generator)

    def product(self, columns: Tensor | None) -> Tensor:
        return gated(self.features, self.cosines, self.weight, self.bias, columns)

    def expected(self) -> Tensor:
        return self.features.unsqueeze(1) * functional.relu(self.cosines @ self.weight.T + self.bias)

    def gradients(self, product: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(product, (self.made_of, self.weight, self.bias), grad, retain_graph=True)


@pytest.mark.usefixtures("way")
def test_a_gate_and_its_gradients(columns: Tensor | None, generator: torch.Generator) -> None:
    made = Gate(generator)
    product, expected = made.product(columns), kept(made.expected(), 2, columns)
    torch.testing.assert_close(product, expected)
    grad = kept(made.grad, 2, columns)
    torch.testing.assert_close(made.gradients(product, grad), made.gradients(expected, grad))


def test_a_gate_in_bfloat16_is_near(columns: Tensor | None, generator: torch.Generator) -> None:
    made = Gate(generator)
    with in_bfloat16():
        product = made.product(columns)
    assert product.dtype == torch.bfloat16
    expected, grad = kept(made.expected(), 2, columns), kept(made.grad, 2, columns)
    torch.testing.assert_close(product.float(), expected, rtol=4 * BFLOAT16_STEP, atol=8 * BFLOAT16_STEP)
    found, wanted = made.gradients(product, grad.bfloat16()), made.gradients(expected, grad)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == torch.float32
        assert functional.cosine_similarity(one.flatten(), other.flatten(), dim=0) > 0.999


def test_a_parameter_that_is_no_number_shows(generator: torch.Generator) -> None:
    """A network that has diverged must not look well."""
    made = Gate(generator)
    with torch.no_grad():
        made.bias[2] = torch.nan
    product = made.product(None)
    of_features, *_ = made.gradients(product, made.grad)
    assert product[..., 2].isnan().all() and of_features.isnan().any()


def test_a_feature_that_is_no_number_shows(generator: torch.Generator) -> None:
    made = Gate(generator)
    features = made.features.detach().clone().requires_grad_()
    with torch.no_grad():
        features[1, 2] = torch.nan
    product = gated(features, made.cosines, made.weight, made.bias)
    (found,) = torch.autograd.grad(product, features, made.grad)
    assert product[1, :, 2].isnan().any() and found[1, 2].isnan()
    assert not product[0].isnan().any() and not found[0].isnan().any()


def test_gradients_of_gradients_are_refused(generator: torch.Generator) -> None:
    made = Gate(generator)
    mu, sigma = parameters(generator, (2, F), (2, F))
    weight = noisy_weight(mu, sigma, torch.ones(1, F), torch.ones(2))
    for output, part in ((made.product(None), made.weight), (weight, sigma)):
        (first,) = torch.autograd.grad(output.square().sum(), part, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            torch.autograd.backward(first.sum())


def test_one_row_of_taus_serves_all_features(generator: torch.Generator) -> None:
    made = Gate(generator)
    one = gated(made.features, made.cosines[:1], made.weight, made.bias)
    many = gated(made.features, made.cosines[:1].repeat(B, 1, 1), made.weight, made.bias)
    assert torch.equal(one, many)


def test_lit_columns_are_those_that_any_row_lights(generator: torch.Generator) -> None:
    features = torch.zeros(2, 100)
    features[0, 10:20], features[1, 15:43] = 1.0, -2.0  # 33 of them: 64 with those that fill the lanes
    columns = lit_columns(features, LEAST_ROWS)
    assert columns is not None and len(columns) == 64
    assert set(range(10, 43)) <= set(columns.tolist()) and columns.tolist() == sorted(set(columns.tolist()))
    features[1, 3:] = torch.nan  # not 0 either
    assert lit_columns(features, LEAST_ROWS) is None  # 97 of 100
    assert lit_columns(torch.zeros(2, 100), LEAST_ROWS - 1) is None


def test_no_lit_column_is_still_a_product() -> None:
    columns = lit_columns(torch.zeros(2, 100), LEAST_ROWS)
    assert columns is not None and len(columns) == 32


def test_loops_are_for_large_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "LEAST_WEIGHTS", 12)

    def made_by(outputs: int) -> str:
        mu, sigma = torch.ones(outputs, 4, requires_grad=True), torch.ones(outputs, 4)
        weight = noisy_weight(mu, sigma, torch.ones(1, 4), torch.ones(outputs))
        assert weight.grad_fn is not None and torch.equal(weight, torch.full((outputs, 4), 2.0))
        return weight.grad_fn.name()

    assert made_by(3) == "_BuiltBackward" != made_by(2)
