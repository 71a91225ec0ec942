from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from agents.parts.off_policy import OffPolicyAgent
from benchmarks import gpu
from benchmarks.harness import setting_for
from kernels.cuda_graph import CudaGraph
from wiring.setting import build_agent

TINY = (
    "--hidden-size 16 --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4"
    " --memory-capacity 8192 --learn-start 64"
)


@pytest.mark.slow
def test_it_runs_on_a_processor_too(tmp_path: Path) -> None:
    """A learner and a loop of real processes, small and short."""
    words = (
        "--device cpu --quick --spec specs/atari/rainbow_iqn_cpu.yaml --batch-sizes 8 --precisions float32"
    )
    sizes = ["--actors", "1", "--seconds", "0.1", "--window", "0.5", "--flags", TINY]
    assert gpu.main([*words.split(), *sizes, "--json", str(tmp_path / "gpu.json")]) == 0
    found = json.loads((tmp_path / "gpu.json").read_text())
    (learner,), (loop,) = found["learner"], found["loop"]
    assert (learner["batch_size"], learner["precision"], learner["compile"]) == (8, "float32", "none")
    assert learner["batches_per_s"] > 0
    assert loop["actors"] == 1 and loop["window_s"] >= 0.5 and loop["updates_per_s"] > 0
    assert loop["frames_per_s"] == pytest.approx(4 * loop["window_steps"] / loop["window_s"])
    lasting = min(loop["frames_per_s"], 4 * 4 * loop["updates_per_s"])  # 4 frames a step, 4 steps an update
    assert loop["hours_for_200M_frames"] == pytest.approx(2e8 / lasting / 3600)
    assert {"commit", "machine", "versions"} <= found.keys()


def test_an_update_that_was_not_recorded_is_no_figure_of_a_graph() -> None:
    """Nor is one of an agent that is not recorded at all."""
    setting = setting_for(f"--spec specs/atari/rainbow_iqn_cpu.yaml --disable-cuda --compile default {TINY}")
    agent = build_agent(setting.args, setting.problem, learning=True)
    assert isinstance(agent, OffPolicyAgent)
    assert gpu.is_compiled(agent, "default") and not gpu.is_compiled(agent, "cuda-graphs")
    graph = agent._gradients = CudaGraph(agent._derive, [], agent.device)
    assert gpu.is_compiled(agent, "cuda-graphs")
    graph.gave_up = True
    assert gpu.is_compiled(agent, "default") and not gpu.is_compiled(agent, "cuda-graphs")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        gpu.main([])
    assert ended.value.code == 2
    assert "finds no CUDA device here" in capsys.readouterr().err
