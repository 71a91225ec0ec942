"""Parameters of the environments."""

from __future__ import annotations

from parameters.declare import Programs, Settings, parameter


class EnvironmentSettings(Settings):
    """Environment (SABER by default, Toromanoff et al. 2019, arXiv 1908.04683)."""

    programs = Programs.ALL

    envs_per_actor: int = parameter(
        1, "Environments that each actor steps together", ge=1, le=1024, programs=Programs.RUN
    )
    history_length: int = parameter(
        0,
        "Frames stacked into a state (4 in DQN); 0 = usual for the game: 4 for images, 1 for vectors",
        shared=True,
        ge=0,
        le=64,
    )
    action_repeat: int = parameter(
        4,
        "Frames per agent step (ALE, VizDoom, PettingZoo's Atari); moves in mazes, pictures in Malmo; 1 in all others",
        shared=True,
        ge=1,
    )
    proba_sticky_actions: float = parameter(
        0.25,
        "Probability that ALE, or a seat of PettingZoo's Atari, repeats the last action instead (Machado et al. 2018); 0 = off",
        shared=True,
        ge=0,
        lt=1,
    )
    disable_SABER_mode: bool = parameter(
        False,
        "Episodes end after 30 minutes of play instead of SABER's 100 hours and stuck rule",
        shared=True,
    )
    max_episode_steps: int = parameter(
        0,
        "ALE, Gymnasium, MinAtar, Unity, PettingZoo, own environments: agent steps after which an episode is truncated (RND: 4500); 0 = as they come",
        shared=True,
        ge=0,
    )
    max_stuck_time: float = parameter(
        300.0,
        "SABER: seconds of play (60 frames each) without reward after which an episode stops",
        shared=True,
        gt=0,
    )
    stuck_is_terminal: bool = parameter(
        False, "That stop is a termination, as in the original, instead of a truncation", shared=True
    )
    minimal_actions: bool = parameter(
        False,
        "ALE: the agent chooses among the actions that the game reads (DQN) instead of all 18 (SABER)",
        shared=True,
    )
    noop_max: int = parameter(
        0,
        "ALE: a game begins with a random number of emulator frames without action, fewer than this (DQN: 30); 0 = none",
        shared=True,
        ge=0,
        le=1000,
    )
    terminal_on_life_loss: bool = parameter(
        False,
        "ALE: in training the loss of a life ends an episode, and the game goes on (DQN); evaluations play whole games",
        shared=True,
    )
    env_args: str = parameter(
        "",
        "Gymnasium, Unity, own environments: arguments of their constructor as JSON, '{\"size\": 5}' (with --seat-runs also a list, one for each run); not adopted from a run",
    )
    resize: int = parameter(
        0,
        "Of the same: width and height that images are brought to, pixels (Atari: 84); 0 = as they come",
        shared=True,
        ge=0,
        le=1024,
    )
    grey: bool = parameter(False, "Of the same: colour images become grey", shared=True)
    info_masks: bool = parameter(
        False,
        'Of the same: info["action_mask"] is obeyed, as of Taxi-v4; one in the observation always is',
        shared=True,
    )
    frame_width: int = parameter(
        160,
        "Width of the images of mazes, VizDoom and Malmo, pixels (malmomo: 160)",
        shared=True,
        ge=16,
        le=1920,
    )
    frame_height: int = parameter(
        120, "Height of those images, pixels (malmomo: 120)", shared=True, ge=16, le=1080
    )
    reward_clip: float = parameter(
        1.0,
        "Rewards are learned from within +- this; 0 = not clipped",
        shared=True,
        ge=0,
        programs=Programs.RUN,
    )
    reward_smoothing: float = parameter(
        0.0,
        "Share of the last step's learned reward that is carried into the next (exponential mean); 0 = off",
        shared=True,
        ge=0,
        lt=1,
        programs=Programs.RUN,
    )


class MalmoSettings(Settings):
    """Malmo (Minecraft; docs/malmo.md)."""

    programs = Programs.ALL

    malmo_ports: str = parameter(
        "9000",
        "Minecraft clients that actors share: ports, or host:port, as 11100,11200 (MalmoEnv's default: 9000)",
        pattern=r"^[^,\s]+(,[^,\s]+)*$",
    )
    overclock_rate: float = parameter(
        4.0, "How much faster than real time Minecraft runs (malmomo: 4)", gt=0, le=100
    )
    onscreen_rendering: bool = parameter(False, "Minecraft draws to its window as well; slower")
    episode_time_sec: float = parameter(
        30.0, "Length of a mission, seconds of Minecraft's own time (malmomo: 30)", shared=True, gt=0
    )
    no_reward_default: float = parameter(0.0, "Reward of a step for which Minecraft sends none", shared=True)
