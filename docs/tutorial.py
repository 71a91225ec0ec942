"""A first experiment, cell by cell: a spec, a run, its results, a plot of one's own.

Open this file in an editor that knows `# %%` cells and run them one by one, or all of it:

    python docs/tutorial.py [FOLDER]

Everything goes into FOLDER, results/tutorial unless another is named. It takes half a minute.
"""

# %% Where things are
import csv
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lab.session import sessions_in  # noqa: E402
from lab.spec import find_experiment  # noqa: E402
from reporting.measures.fitness import session_fitness, standard_of  # noqa: E402

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "results" / "tutorial")
folder.mkdir(parents=True, exist_ok=True)

# %% A spec
# The first line names paper and deviations; the keys are flags of args.py; `meta` says how often to run.
spec = folder / "tutorial.yaml"
spec.write_text("""# A2C: Mnih et al. 2016 (arXiv 1602.01783): specs/classic/catch_a2c.yaml, shorter
agent: a2c
game: probe:catch
T-max: 30000
learn-start: 32
rollout-length: 5
envs-per-actor: 16
sequential: true
serial: true                 # one process alternates acting and learning
gae-lambda: 1
entropy-coeff: 0.01
lr: 0.002
adam-eps: 0.00001
head-sizes: "64"
log-interval: 5000
threads: 1
meta:
  sessions: 2
""")
experiment = find_experiment(spec, "tutorial")  # a mistake would be one sentence here
args = experiment.args()
print(f"{experiment.name}: {args.agent} on {args.game}, {experiment.meta.sessions} sessions")

# %% A run
# In a terminal: python run_lab.py run FOLDER/tutorial.yaml tutorial train
# Run this cell twice: what is done stays as it is.
command = [sys.executable, str(ROOT / "run_lab.py"), "run", str(spec), "tutorial", "train"]
subprocess.run([*command, "--results", str(folder / "lab")], check=True, cwd=ROOT)

# %% Its results
trial = folder / "lab" / "tutorial" / "train" / "trial_0"
with (trial.parent / "experiment.csv").open() as file:
    (row,) = csv.DictReader(file)
print(f"mean score {row['mean_score_points']} ± {row['std_score_points']}, code {row['commit']}")
print("graphs:", *sorted(path.name for path in trial.parent.rglob("*.png")))

# %% Its sessions, as arrays
sessions = sessions_in(trial)
standard = standard_of("probe:catch")
assert standard is not None
for session in sessions:
    episodes = session.episodes["probe:catch"]
    strength, speed, stability = session_fitness(*episodes, standard)
    print(f"seed {session.seed}: {len(episodes.scores)} episodes, strength {strength:.2f}")

# %% A plot of one's own: how many of the last 50 balls were caught
import numpy as np  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

figure = Figure(layout="constrained")
axes = figure.subplots()
for session in sessions:
    steps, scores = session.episodes["probe:catch"]
    caught = np.convolve(scores > 0, np.full(50, 1 / 50), mode="valid")
    axes.plot(steps[49:], caught, label=f"seed {session.seed}")
axes.axhline((standard.random + 1) / 2, color="grey", linestyle=":", label="random play")
axes.set(xlabel="agent steps", ylabel="share of balls caught")
axes.legend(loc="lower right")
figure.savefig(folder / "caught.png")
print(f"drawn: {folder / 'caught.png'}")
