"""What deploy/ ships: files that parse, commands that our programs take, no Redis open to the world."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import redis
import yaml

from args import read_args
from memory.server.connection import RedisConfig, make_client
from tests.processes import until

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
MANIFESTS: list[dict[str, Any]] = [
    manifest
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for manifest in yaml.safe_load_all(path.read_text())
]
KUBERNETES = "1.37"
"""Whose schemas the manifests are held against."""
SBATCH = (DEPLOY / "slurm.sbatch").read_text()


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and specification of every kind of pod."""
    for manifest in MANIFESTS:
        if template := manifest["spec"].get("template") if "spec" in manifest else None:
            yield manifest["metadata"]["name"], template


def commands() -> dict[str, list[str]]:
    """Every command line of deploy/, by where it stands."""
    found = {f"compose {name}": shlex.split(it["command"]) for name, it in COMPOSE["services"].items()}
    for name, template in pods():
        (container,) = template["spec"]["containers"]
        found[name] = [*container["command"], *container.get("args", [])]
    lists = re.findall(r"^(?:run|redis)=\((.*)\)$", SBATCH, re.MULTILINE)
    assert len(lists) == 2, "what the run is, and where Redis is"
    flags = shlex.split(re.sub(r'"\$\w+"', "8", " ".join(lists)))  # variables of the script
    for program in ("launch_learner.py", "launch_actor.py"):
        assert f"python {program} " in SBATCH
        found[f"slurm {program}"] = ["python", program, *flags]
    return found


COMMANDS = commands()


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_every_command_names_a_program_and_its_flags(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (ROOT / words[1]).is_file()
    monkeypatch.chdir(ROOT)
    if words[0] == "python":
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            args = read_args(words[2:])
        assert args.spec and args.redis_password_file
    else:
        assert words[:2] == ["bash", "deploy/serve_redis.sh"] and (ROOT / words[3]).is_file()


def test_learner_and_actors_of_a_file_play_the_same_run() -> None:
    for learner, actor in (("compose learner", "compose actor"), ("rainbow-learner", "rainbow-actors")):
        a, b = (read_args(COMMANDS[name][2:]) for name in (learner, actor))
        assert a.shared() == b.shared() and a.nb_actor == b.nb_actor
        assert (a.host_redis, a.port_redis) == (b.host_redis, b.port_redis)
        assert b.id_actor == -1, "copies of one container take numbers themselves"
    assert read_args(COMMANDS["compose actor"][2:]).nb_actor == COMPOSE["services"]["actor"]["scale"]
    (actors,) = (m["spec"] for m in MANIFESTS if m["kind"] == "Deployment")
    assert read_args(COMMANDS["rainbow-actors"][2:]).nb_actor == actors["replicas"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda m: f"{m['kind']} {m['metadata']['name']}")
def test_manifests_are_what_kubernetes_takes(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_a_wrong_manifest_is_noticed() -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**MANIFESTS[0], "sepc": {}}, KUBERNETES, strict=True)


def test_what_manifests_name_is_there() -> None:
    names = {(m["kind"], m["metadata"]["name"]) for m in MANIFESTS}
    for name, template in pods():
        claims = template["spec"]["volumes"]
        assert {("Secret", v["secret"]["secretName"]) for v in claims if "secret" in v} <= names, name
        found = {v["persistentVolumeClaim"]["claimName"] for v in claims if "persistentVolumeClaim" in v}
        assert {("PersistentVolumeClaim", claim) for claim in found} <= names, name
        assert template["metadata"]["labels"]["app"] == "rainbow", "else the network policy shuts it out"
    assert ("Service", read_args(COMMANDS["rainbow-learner"][2:]).host_redis) in names


def test_redis_is_open_to_nobody_else() -> None:
    for service in COMPOSE["services"].values():
        assert "ports" not in service and service["networks"] == ["run"], "no port is published"
    service, policy = (
        next(m["spec"] for m in MANIFESTS if m["kind"] == k) for k in ("Service", "NetworkPolicy")
    )
    assert service["type"] == "ClusterIP"
    assert policy["podSelector"]["matchLabels"] == service["selector"]
    assert policy["ingress"][0]["from"] == [{"podSelector": {"matchLabels": {"app": "rainbow"}}}]
    (secret,) = (m for m in MANIFESTS if m["kind"] == "Secret")
    assert secret["stringData"] == {"password": ""}, "no password in the repository; an empty one is refused"
    assert not any("hostPort" in str(template) or "hostNetwork" in str(template) for _, template in pods())


def test_the_image_pins_python_and_installs_from_requirements() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.search(r"^FROM python:3\.\d+\.\d+-", text, re.MULTILINE)
    for file in re.findall(r"requirements/[\w.]+", text):
        assert (ROOT / file).is_file()
    assert text.count("-r requirements/") == 2 and "USER player" in text
    assert {"build", "image"} <= COMPOSE["x-run"].keys() and ":" not in COMPOSE["x-run"]["image"]
    assert (DEPLOY / COMPOSE["x-run"]["build"]["context"]).resolve() == ROOT


@pytest.mark.parametrize("name", ["slurm.sbatch", "serve_redis.sh"])
def test_shell_files_parse(name: str) -> None:
    subprocess.run(["bash", "-n", DEPLOY / name], check=True, timeout=60)


def test_the_server_asks_for_the_password_in_the_file(tmp_path: Path) -> None:
    password = tmp_path / "password"
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    script = ["bash", str(DEPLOY / "serve_redis.sh"), str(password)]
    script.append(str(ROOT / "redis_conf" / "redis_aof_everysec.conf"))
    own = ["--port", str(port), "--dir", str(tmp_path), "--bind", "127.0.0.1"]  # a test listens here alone
    for weak in ("", "short"):
        password.write_text(weak)
        refused = subprocess.run([*script, *own], capture_output=True, text=True, timeout=60)
        assert refused.returncode == 2 and refused.stderr.startswith("error: the password of Redis must be")
    password.write_text("0123456789abcdef0123\n")
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen([*script, *own], stdout=log)
    try:
        until(lambda: answers(port), (tmp_path / "log").read_text)
        with closing(redis.Redis(port=port)) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        known = make_client(RedisConfig("127.0.0.1", port, redis_password_file=str(password)))
        assert known.info("persistence")["aof_enabled"] == 1, "the configuration counts too"
        known.close()
        shown = Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert b"0123456789abcdef" not in shown
        server.terminate()
        assert server.wait(30) == 0
    finally:
        server.kill()


def answers(port: int) -> bool:
    with closing(socket.socket()) as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


SRUN = """#!/usr/bin/env bash
# As Slurm's on one node: the program once for each task
tasks=1
while [[ $1 == --* ]]; do [[ $1 == --ntasks=* ]] && tasks=${1#--ntasks=}; shift; done
pids=()
trap 'kill -TERM "${pids[@]}"; wait' TERM
for ((i = 0; i < tasks; i++)); do SLURM_PROCID=$i "$@" & pids+=($!); done
code=0
for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
exit $code
"""


@pytest.mark.slow
def test_the_batch_file_runs_to_its_end(tmp_path: Path) -> None:
    """With a stand-in for srun, which starts the real programs; a tiny game in place of Atari."""
    for name in ("launch_learner.py", "launch_actor.py", "deploy", "redis_conf", "specs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    script = tmp_path / "run.sbatch"
    tiny = (
        "--game probe:catch --agent dqn --T-max 600 --memory-capacity 2000 --learn-start 64 --hidden-size 16"
    )
    script.write_text(re.sub(r"^run=\(.*\)$", f"run=({tiny})", SBATCH, flags=re.MULTILINE))
    (tmp_path / "hostname").write_text("#!/bin/sh\necho 127.0.0.1\n")
    (tmp_path / "hostname").chmod(0o755)
    slurm = {"SLURM_NTASKS": "4", "SLURM_JOB_ID": str(os.getpid())}
    python = f"{tmp_path}:{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", script],
        cwd=tmp_path,
        env={**os.environ, **slurm, "PATH": python, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (tmp_path / "results" / "Reward_probe_catch.html").exists()
    assert not list((tmp_path / "results").glob("redis_password*")), "it is removed at the end"
