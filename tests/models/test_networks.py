from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from models.dqn import RainbowNetwork
from models.dueling import DuelingHead
from models.iqn import IqnNetwork
from models.layers import DuelingConfig
from models.noisy import draw_noise

CPU = torch.device("cpu")
CONFIG = DuelingConfig(
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


def test_independent_rows_are_the_same_beside_any_others(generator: torch.Generator) -> None:
    """Else features that are 0 in a whole batch may be left out, and other rows say which these are."""
    network = IqnNetwork(replace(CONFIG, hidden_size=200), embedding_dim=5)
    noise, taus = draw_noise(network.noise_sizes, 2, generator, CPU), torch.rand(2, 300, generator=generator)
    one, *others = torch.randn(9, 1, 1, 6, generator=generator)
    with torch.no_grad():
        found = [network(torch.cat((one, other)), taus, noise, True)[0] for other in others]
    assert all(torch.equal(found[0], other) for other in found)
    torch.testing.assert_close(network(torch.cat((one, others[0])), taus, noise)[0], found[0])


def test_a_compiled_iqn_is_one_graph(generator: torch.Generator) -> None:
    """Without loops of ours in between."""
    network = IqnNetwork(replace(CONFIG, hidden_size=200), embedding_dim=5)
    noise = draw_noise(network.noise_sizes, 1, generator, CPU)
    s, taus = torch.randn(16, 1, 6, generator=generator), torch.rand(16, 64, generator=generator)
    torch.compiler.reset()  # what other tests compiled counts to a limit
    graph = torch.compile(network, backend="eager", fullgraph=True)
    torch.testing.assert_close(graph(s, taus, noise), network(s, taus, noise))


def test_iqn_runs_its_torso_once_per_forward_pass(generator: torch.Generator) -> None:
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
