from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kernels import noisy_weight, tau_gate
from kernels.rows import rows_apart
from models import iqn
from models.dueling import DuelingHead, NetworkConfig
from models.iqn import IqnNetwork
from models.noisy import draw_noise
from models.rainbow import RainbowNetwork

CPU = torch.device("cpu")
CONFIG = NetworkConfig(
    observation_shape=(1, 6),
    observation_dtype="float32",
    num_actions=3,
    hidden_size=8,
    torso="mlp",
    noisy_std=0.5,
)


def test_head_is_v_plus_centred_a_of_two_separate_streams(generator: torch.Generator) -> None:
    head = DuelingHead(num_features=5, hidden_size=4, num_actions=3, num_outputs=2, noisy_std=0.5)
    noise = draw_noise(head.noise_sizes, 1, generator, CPU)
    x = torch.randn(6, 1, 5, generator=generator)

    def stream(part: int) -> Tensor:
        rows, eps_in = slice(4 * part, 4 * part + 4), noise["hidden_in"][0, 5 * part : 5 * part + 5]
        eps_out = noise["hidden_out"][0, rows]
        weight = head.hidden.weight_mu[rows] + head.hidden.weight_sigma[rows] * torch.outer(eps_out, eps_in)
        return torch.relu(x @ weight.T + head.hidden.bias_mu[rows] + head.hidden.bias_sigma[rows] * eps_out)

    value = head.value(stream(0), noise["value_in"], noise["value_out"])  # [6, 1, 2]
    advantage = head.advantage(stream(1), noise["advantage_in"], noise["advantage_out"]).view(6, 1, 3, 2)
    estimates = head(x, noise)
    torch.testing.assert_close(estimates, value.unsqueeze(2) + advantage - advantage.mean(2, keepdim=True))
    torch.testing.assert_close(estimates.mean(2), value)


def test_iqn_multiplies_features_by_the_cosine_embedding(generator: torch.Generator) -> None:
    network = IqnNetwork(CONFIG, embedding_dim=5)
    noise = draw_noise(network.noise_sizes, 1, generator, CPU)
    s = torch.randn(2, 1, 6, generator=generator)
    taus = torch.rand(2, 4, generator=generator)
    quantiles = network(s, taus, noise)
    assert quantiles.shape == (2, 4, 3)
    weight, bias = network.embedding.weight, network.embedding.bias
    for b in range(2):
        for n in range(4):
            cosines = torch.tensor([math.cos(math.pi * i * float(taus[b, n])) for i in range(1, 6)])
            features = network.torso(s[b : b + 1]) * torch.relu(weight @ cosines + bias)
            torch.testing.assert_close(
                quantiles[b, n], network.head(features.view(1, 1, -1), noise).flatten()
            )


Seen = list[int | None]


@pytest.fixture
def columns_used(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """How many were chosen in each pass, None for all, where 8 rows are enough to choose, by loops."""
    seen: Seen = []

    def choose(features: Tensor, product_rows: int) -> Tensor | None:
        columns = tau_gate.lit_columns(features, product_rows)
        seen.append(None if columns is None else len(columns))
        return columns

    monkeypatch.setattr(tau_gate, "LEAST_ROWS", 8)
    monkeypatch.setattr(noisy_weight, "LEAST_WEIGHTS", 1)
    monkeypatch.setattr(iqn, "lit_columns", choose)
    return seen


@pytest.mark.parametrize(("rows_of_noise", "relative"), [(1, False), (1, True), (2, False)])
def test_iqn_is_the_same_without_its_dark_features(
    rows_of_noise: int,
    relative: bool,
    monkeypatch: pytest.MonkeyPatch,
    columns_used: Seen,
    generator: torch.Generator,
) -> None:
    """One noise for all rows, and one for each: that takes two products of as many rows."""
    network = IqnNetwork(replace(CONFIG, hidden_size=200), embedding_dim=5)
    noise = draw_noise(network.noise_sizes, rows_of_noise, generator, CPU)
    s = torch.randn(2, 1, 6, generator=generator)
    taus = torch.rand(2, 4 // rows_of_noise, generator=generator)

    def gradients() -> tuple[Tensor, dict[str, Tensor]]:
        quantiles = network(s, taus, noise, relative=relative)
        network.zero_grad()
        quantiles.square().sum().backward()
        parameters = network.named_parameters()
        return quantiles, {name: each.grad for name, each in parameters if each.grad is not None}

    without, found = gradients()
    with torch.no_grad():
        acting = network(s, taus, noise, relative=relative)
    monkeypatch.setattr(tau_gate, "LEAST_ROWS", 9)
    whole, wanted = gradients()
    assert columns_used[0] in (96, 128, 160)
    assert columns_used[1:] == [columns_used[0], None]
    torch.testing.assert_close((without, acting), (whole, whole))
    torch.testing.assert_close(found, wanted)


def test_iqn_keeps_its_dark_features_where_rows_are_apart(
    columns_used: Seen, generator: torch.Generator
) -> None:
    """As in evaluation, and until the outermost has ended; in other threads they may be left out."""
    network = IqnNetwork(replace(CONFIG, hidden_size=200), embedding_dim=5)
    noise = draw_noise(network.noise_sizes, 3, generator, CPU)
    s, taus = torch.randn(3, 1, 6, generator=generator), torch.rand(3, 9, generator=generator)
    with rows_apart(), ThreadPoolExecutor(1) as other:
        with rows_apart():
            network(s, taus, noise)
        network(s, taus, noise)
        assert columns_used == [None, None]
        other.submit(network, s, taus, noise).result()
    network(s, taus, noise)
    assert None not in columns_used[2:] and len(columns_used) == 4


def test_a_compiled_iqn_keeps_its_dark_features(columns_used: Seen, generator: torch.Generator) -> None:
    network = IqnNetwork(replace(CONFIG, hidden_size=200), embedding_dim=5)
    noise = draw_noise(network.noise_sizes, 1, generator, CPU)
    s, taus = torch.randn(2, 1, 6, generator=generator), torch.rand(2, 4, generator=generator)
    graph = torch.compile(network, backend="eager", fullgraph=True)
    torch.testing.assert_close(graph(s, taus, noise), network(s, taus, noise))
    assert columns_used[-1] is not None


def test_relative_quantiles_rank_actions_alike(generator: torch.Generator) -> None:
    network = IqnNetwork(CONFIG, embedding_dim=5)
    noise = draw_noise(network.noise_sizes, 1, generator, CPU)
    s, taus = torch.randn(4, 1, 6, generator=generator), torch.rand(4, 7, generator=generator)
    quantiles, relative = network(s, taus, noise), network(s, taus, noise, relative=True)
    shared = (quantiles - relative).detach()
    torch.testing.assert_close(shared, shared[..., :1].expand(4, 7, 3))
    assert relative.detach().std(2).min() > 0


def test_iqn_runs_its_torso_once_per_pass(generator: torch.Generator) -> None:
    network = IqnNetwork(CONFIG, embedding_dim=5)
    rows: list[int] = []
    network.torso.register_forward_hook(lambda _, inputs, __: rows.append(len(inputs[0])))
    network(torch.zeros(2, 1, 6), torch.rand(2, 32), draw_noise(network.noise_sizes, 2, generator, CPU))
    assert rows == [2]


def test_rainbow_gives_logits_per_action_and_atom(generator: torch.Generator) -> None:
    network = RainbowNetwork(CONFIG, atoms=11)
    noise = draw_noise(network.noise_sizes, 2, generator, CPU)
    s = torch.randn(2, 1, 6, generator=generator)
    logits = network(s, noise)
    assert logits.shape == (2, 3, 11)
    alone = network(s[1:], {name: eps[1:] for name, eps in noise.items()})
    torch.testing.assert_close(logits[1:], alone)  # a row sees its own noise and nothing else


def test_estimates_are_float32_under_autocast(generator: torch.Generator) -> None:
    network = RainbowNetwork(CONFIG, atoms=11)
    with torch.autocast("cpu", torch.bfloat16):
        logits = network(torch.randn(4, 1, 6), draw_noise(network.noise_sizes, 4, generator, CPU))
    assert logits.dtype == torch.float32
