"""Parameters of the agents: optimisation, policy gradients, networks."""

from __future__ import annotations

from parameters.declare import Programs, Settings, parameter


class LearnerSettings(Settings):
    """Learner."""

    programs = Programs.LEARNING

    lr: float = parameter(5e-5, "Adam's learning rate (IQN: 5e-5; Rainbow: 6.25e-5)", gt=0)
    lr_end: float | None = parameter(
        None,
        "Adam's learning rate at --T-max, to which it falls linearly (PPO on Atari: 0); not given, --lr stays",
        ge=0,
    )
    adam_eps: float = parameter(3.125e-4, "Adam's epsilon (IQN: 0.01/32; Rainbow: 1.5e-4)", gt=0)
    max_grad_norm: float = parameter(
        0.0, "Norm to which gradients are clipped; 0 = not clipped, as the original", ge=0
    )
    target_update: int = parameter(
        32_000,
        "Agent steps between copies to the target network (original: 32K; Rainbow's 32K are frames, 8K agent steps)",
        shared=True,
        ge=1,
    )
    polyak: float = parameter(
        0.001,
        "naf: share of the online network that the target takes over per update (tau)",
        shared=True,
        gt=0,
        le=1,
    )
    l2: float = parameter(0.0, "naf: weight decay, added to the gradient as L2 * weight", ge=0)
    mirror: bool = parameter(
        False,
        "naf: mirror half of each batch left to right, actions included; for environments in which the mirror image is as likely",
    )
    precision: str = parameter(
        "float32",
        "Precision of forward passes: float32, bfloat16, or auto: bfloat16 where the processor has units for it",
        choices=("float32", "bfloat16", "auto"),
    )
    compile: str = parameter(
        "none",
        "Learners on a replay: none; default: networks by torch.compile; cuda-graphs: the update as a graph too",
        choices=("none", "default", "cuda-graphs"),
    )


class PolicySettings(Settings):
    """Policy gradients and random network distillation (Burda et al. 2018, arXiv 1810.12894)."""

    programs = Programs.LEARNING

    epochs: int = parameter(4, "ppo, ppo_rnd: passes over a rollout (Burda et al.: 4)", ge=1)
    ppo_clip: float = parameter(
        0.1,
        "ppo, ppo_rnd: the ratio to the policy that acted counts within 1 +- this (Burda et al.: 0.1)",
        gt=0,
    )
    entropy_coeff: float = parameter(
        0.001, "Weight of the entropy bonus, per nat (Burda et al.: 0.001)", ge=0
    )
    entropy_coeff_end: float | None = parameter(
        None,
        "That weight at --T-max, to which it falls linearly (SLM-Lab's linear_decay); not given, it stays",
        ge=0,
    )
    gae_lambda: float = parameter(
        0.95, "Lambda of advantages and value targets (Burda et al.: 0.95)", ge=0, le=1
    )
    baseline: bool = parameter(True, "reinforce: subtract a learned value from the return (Williams 1992)")
    reward_scale: float = parameter(
        1.0,
        "reinforce, a2c, ppo: rewards are multiplied by this and then clipped to --reward-clip; naf: clipped, then multiplied",
        shared=True,
        gt=0,
        programs=Programs.RUN,
    )
    standardise_advantages: bool = parameter(
        False, "reinforce, a2c, ppo: advantages of an update to mean 0 and deviation 1 (as SLM-Lab does)"
    )
    episodic: bool = parameter(
        False, "a2c: learn from steps once their episode has ended, not from every rollout as it comes"
    )
    v_trace: bool = parameter(
        True,
        "Correct advantages for rollouts that are some updates old (Espeholt et al. 2018); off: as if they were not",
    )
    ext_discount: float = parameter(
        0.999, "ppo_rnd: gamma of extrinsic, episodic returns (Burda et al.: 0.999)", ge=0, le=1
    )
    int_discount: float = parameter(
        0.99,
        "ppo_rnd: gamma of intrinsic returns, which no episode's end cuts (Burda et al.: 0.99)",
        ge=0,
        le=1,
    )
    ext_coeff: float = parameter(2.0, "ppo_rnd: weight of extrinsic advantages (Burda et al.: 2)", ge=0)
    int_coeff: float = parameter(
        1.0, "Weight of intrinsic advantages (Burda et al.: 1), or of --intrinsic's bonus in the reward", ge=0
    )
    rnd_update_proportion: float = parameter(
        0.25,
        "Share of the samples that RND's predictor learns from (Burda et al.: 0.25 at 128 environments)",
        gt=0,
        le=1,
    )
    intrinsic: str = parameter(
        "none",
        "none, or rnd: a bonus for new frames in the rewards of a replay agent",
        shared=True,
        choices=("none", "rnd"),
        programs=Programs.RUN,
    )
    rnd_lr: float = parameter(
        1e-4, "Adam's learning rate of --intrinsic's predictor (Burda et al.: 1e-4)", gt=0
    )


TORSOS = (
    *("auto", "nature", "nature_same", "data_efficient", "minatar", "lines", "mlp", "flat"),
    *(f"impala{size}{norm}" for size in ("", "_x2", "_x4", "_small") for norm in ("", "_spectral")),
)


class NetworkSettings(Settings):
    """Networks, exploration and targets."""

    programs = Programs.ALL

    torso: str = parameter(
        "auto",
        "auto, nature, nature_same, data_efficient, minatar, lines, mlp, flat (models/layers.py), or impala, impala_x2,"
        " impala_x4, impala_small, each also with _spectral at its end: a spectral norm (models/convolutions/impala.py)",
        shared=True,
        choices=TORSOS,
    )
    hidden_size: int = parameter(
        512, "Units of each dueling stream's hidden layer (DQN: 512)", shared=True, ge=1
    )
    trunk_size: int = parameter(
        0,
        "Units of a layer between torso and head, which games of several kinds share; 0 = none, and --hidden-size where the games differ",
        shared=True,
        ge=0,
    )
    head_sizes: str = parameter(
        "100,50",
        "Policy agents and naf: units of the hidden layers above the torso (malmomo: 100,50; Burda et al.: 256,448)",
        shared=True,
        pattern=r"^\d+(,\d+)*$",
    )
    layer_norm: bool = parameter(
        False,
        "naf: layer normalisation between the hidden layers of --head-sizes and their ReLUs (Ba et al. 2016)",
        shared=True,
    )
    normalise_observations: bool = parameter(
        False,
        "reinforce, a2c, ppo: observations to mean 0 and deviation 1 over the run so far, element by element (as the Zoo)",
        shared=True,
    )
    epsilon: float = parameter(
        0.4,
        "dqn, double_dqn: share of random actions in the first environment of all (Ape-X: 0.4)",
        shared=True,
        ge=0,
        le=1,
    )
    epsilon_alpha: float = parameter(
        7.0,
        "dqn, double_dqn: alpha of epsilon^(1 + alpha i / (N - 1)), environment i of N in all (Ape-X: 7)",
        shared=True,
        ge=0,
    )
    action_noise: str = parameter(
        "ou",
        "naf: ou (Ornstein-Uhlenbeck), parameter (Plappert et al. 2018) or none",
        shared=True,
        choices=("ou", "parameter", "none"),
    )
    ou_theta: float = parameter(
        0.15, "naf: pull of the noise to 0 per step (Lillicrap et al. 2016: 0.15)", shared=True, ge=0, le=1
    )
    ou_sigma: float = parameter(
        0.2,
        "naf: standard deviation of its steps, in half ranges of the action (DDPG: 0.2)",
        shared=True,
        ge=0,
    )
    parameter_noise_distance: float = parameter(
        0.2,
        "naf: root mean square change of actions that parameter noise aims at, half ranges",
        shared=True,
        gt=0,
    )
    noisy_std: float = parameter(
        0.1,
        "Initial standard deviation of noisy layers (original: 0.1; Fortunato et al. 2018: 0.5); 0: no noise",
        shared=True,
        ge=0,
    )
    noisy_epsilon_steps: int = parameter(
        0,
        "iqn, rainbow: agent steps in which the share of random actions falls from 1 by a factor e, beside noisy layers"
        " (BTR: 2M); 0: none",
        shared=True,
        ge=0,
    )
    noisy_epsilon_until: float = parameter(
        0.5, "Share of --T-max after which --noisy-epsilon-steps counts no more (BTR: 0.5)", ge=0, le=1
    )
    reset_every: int = parameter(
        0,
        "iqn, rainbow: agent steps after which the network's head is drawn anew, again and again as long as at least that"
        " many steps of the run remain (Nikishin et al. 2022: 20,000 on Atari 100k); 0: never",
        ge=0,
    )
    munchausen: str = parameter(
        "none",
        "iqn, dqn, double_dqn: none, or the network whose policy is in the targets: target (Vieillard et al. 2020), online (BTR)",
        shared=True,
        choices=("none", "online", "target"),
    )
    munchausen_alpha: float = parameter(
        0.9, "Weight of tau ln pi in the reward (Vieillard et al. 2020: 0.9)", shared=True, ge=0, le=1
    )
    munchausen_tau: float = parameter(
        0.03, "Temperature of the policy, in units of Q (Vieillard et al. 2020: 0.03)", shared=True, gt=0
    )
    munchausen_clip: float = parameter(
        -1.0, "The least that tau ln pi counts as (Vieillard et al. 2020: -1)", shared=True, le=0
    )
    num_tau_samples: int = parameter(
        64, "IQN: N, quantiles of the online network (arXiv 1806.06923 eq. 3)", shared=True, ge=1
    )
    num_tau_prime_samples: int = parameter(
        64, "IQN: N', quantiles of the target network (eq. 3)", shared=True, ge=1
    )
    num_quantile_samples: int = parameter(
        32, "IQN: K, quantiles averaged to choose an action (eq. 3)", shared=True, ge=1
    )
    quantile_embedding_dim: int = parameter(64, "IQN: n, cosines per quantile (eq. 4)", shared=True, ge=1)
    kappa: float = parameter(
        1.0,
        "iqn, dqn, double_dqn: threshold of the Huber loss (IQN's and DQN's papers: 1)",
        shared=True,
        gt=0,
    )
    atoms: int = parameter(51, "Rainbow: atoms of the value distribution (C51)", shared=True, ge=2)
    V_min: float = parameter(-10.0, "Rainbow: lower end of the value support", shared=True)
    V_max: float = parameter(10.0, "Rainbow: upper end of the value support", shared=True)
