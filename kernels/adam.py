"""Adam as PyTorch has it, without what its methods import for torch.compile."""

from __future__ import annotations

from inspect import unwrap

import torch


class Adam(torch.optim.Adam):
    """Its methods are wrapped so that torch.compile leaves them alone, and whoever calls the first of them
    imports the compiler: half of what a learner's start costs. Here they are called as they were written,
    `step` under torch.no_grad(), which one of the wrappers saw to, and without marks for PyTorch's profiler.
    """

    add_param_group = unwrap(torch.optim.Adam.add_param_group)
    load_state_dict = unwrap(torch.optim.Adam.load_state_dict)
    state_dict = unwrap(torch.optim.Adam.state_dict)
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))
    step.hooked = True  # else the constructor wraps it once more, for the profiler
