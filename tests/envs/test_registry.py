"""Names of games, and what each family tells about itself."""

import subprocess
import sys
from collections.abc import Callable

import gymnasium
import pytest

from envs.config import EnvConfig, EnvDescription, EnvError
from envs.registry import canonical_game, describe_env
from tests.processes import ROOT

MakeConfig = Callable[..., EnvConfig]


@pytest.mark.parametrize(
    ("name", "game"),
    [
        ("space_invaders", "space_invaders"),
        ("SpaceInvaders", "space_invaders"),
        ("spaceinvaders", "space_invaders"),
        ("Space Invaders", "space_invaders"),
        ("ALE/SpaceInvaders-v5", "space_invaders"),
        ("ALE/TicTacToe3D-v5", "tic_tac_toe_3d"),
        ("CartPole-v1", "CartPole-v1"),
        ("Blackjack", "blackjack"),  # ALE's
        ("Blackjack-v1", "Blackjack-v1"),  # Gymnasium's
        ("probe:catch", "probe:catch"),
        ("minatar:breakout", "minatar:breakout"),
    ],
)
def test_names_are_understood(name: str, game: str) -> None:
    assert canonical_game(name) == game


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("space_invader", "space_invaders"),
        ("seaquestt", r": did you mean (?!.*Seaquest-v[04])"),
        ("CartPol-v1", "CartPole-v1"),
        ("probe:cach", "probe:catch"),
        ("probe:nope", "probe:catch"),
        ("probe:lock:3", "probe:lock:4"),
        ("vizdoom:x", "vizdoom:my_way_home"),
        ("minatar:breakuot", "minatar:breakout"),
        ("ALE/Pongg-v5", "ALE/Pong-v5"),
        ("warlords", "known"),  # two players only
        ("xyzzy:Nothing-v0", "give --game path/to/my_env.py:MyEnv"),
        ("", "known"),
    ],
)
def test_unknown_names_are_refused_with_advice(name: str, meant: str, make_config: MakeConfig) -> None:
    with pytest.raises(EnvError, match=meant) as caught:
        describe_env(make_config(name))
    assert str(caught.value).startswith(f"No environment is called {name!r}")
    assert str(caught.value).endswith(("?", "."))


@pytest.mark.parametrize("name", ["Pong-v0", "Pong-v4", "PongNoFrameskip-v0", "PongNoFrameskip-v4"])
def test_old_names_of_ale_games_are_not_played_without_saber(name: str) -> None:
    """As plain environments they have no skipped frames, and no sticky actions."""
    with pytest.raises(EnvError, match=f"^{name} would be .* without SABER's rules: --game pong is the same"):
        canonical_game(name)


def test_every_ale_game_of_an_old_name_is_known_by_its_new_one() -> None:
    old = [spec for spec in gymnasium.registry.values() if str(spec.entry_point).startswith("ale_py")]
    assert len(old) > 300
    for game in {str(spec.kwargs["game"]) for spec in old}:
        assert canonical_game(game) == game


def test_descriptions(make_config: MakeConfig) -> None:
    assert describe_env(make_config("ALE/Pong-v5", action_repeat=3)) == EnvDescription(
        (84, 84), "uint8", 18, None, None, frames_per_step=3, frames_per_second=60.0, history_length=4
    )
    cart_pole = EnvDescription((4,), "float32", 2, None, None, 1, None, 1)
    assert describe_env(make_config("CartPole-v1")) == cart_pole
    catch = EnvDescription((10, 5), "uint8", 3, None, None, 1, None, 4)
    assert describe_env(make_config("probe:catch")) == catch
    breakout = EnvDescription((10, 10, 4), "uint8", 6, None, None, 1, None, history_length=1)
    assert describe_env(make_config("minatar:breakout")) == breakout
    pendulum = EnvDescription((3,), "float32", None, (-2.0,), (2.0,), 1, None, 1)
    assert describe_env(make_config("Pendulum-v1")) == pendulum


def test_importing_the_registry_imports_no_emulator() -> None:
    """A family's packages come with the first name that is looked up, not with another game's."""
    heavy = ("ale_py", "cv2", "minatar", "miniworld", "numba", "torch", "vizdoom")
    code = f"import sys, envs.registry; print([name for name in {heavy} if name in sys.modules])"
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert ended.stdout.strip() == "[]"
