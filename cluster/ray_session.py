"""Ray as this house uses it: imported late, quiet, and answered in sentences."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from parameters.declare import UserError
from supervision.process import Stop

ROOT = Path(__file__).resolve().parents[1]
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray sends nothing anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
OWN = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # or 127.0.0.1 is turned into the outer address
    "RAY_worker_niceness": "0",  # not 15: these processes have the priority of any other's
}
"""Environment variables for a Ray that is started here, or listens on the loopback alone."""
REACH_S = 5.0
OBJECT_STORE_BYTES = 80 * 2**20
"""Memory of Ray's object store: nothing but parameters and scores passes through it, and Ray's least is 75
MiB.
"""


@contextlib.contextmanager
def ray_session(address: str | None, stop: Stop, extra: str, namespace: str | None = None) -> Iterator[None]:
    """Ray at `address`, or one on this machine alone that ends with the block. Raises UserError.

    Args:
        extra: which of the set-up's brings Ray.
        namespace: in which actors have their names.
    """
    is_own = not address or address.startswith(("127.", "localhost:"))
    for name, value in (QUIET | OWN if is_own else QUIET).items():
        os.environ.setdefault(name, value)
    if address:
        _check_reached(address)
    try:
        import ray
    except ImportError as error:
        how = f"`EXTRAS={extra} bash scripts/setup.sh`, or `pip install -r requirements/{extra}.txt`"
        raise UserError(f"This needs Ray, an extra that is not whole here ({error}): {how}.") from error
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as place:
        own = {
            "address": "local",
            "num_cpus": len(os.sched_getaffinity(0)),
            "object_store_memory": OBJECT_STORE_BYTES,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": place,
        }
        code = ray.job_config.JobConfig(_py_driver_sys_path=[str(ROOT)])  # Ray knows that of scripts alone
        try:
            options = {"address": address} if address else own
            quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
            ray.init(**options, **quiet, namespace=namespace, job_config=code)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise UserError(f"There is no Ray at {address or 'this machine'}: {reason}{_token()}") from error
        stop.on_signals()  # Ray took SIGTERM
        try:
            yield
        finally:
            ray.shutdown()


def _token() -> str:
    """What to try where a Ray may ask for the token that the first one of this user has left: it shows the
    token by itself where the address is `auto`, not where it is another.
    """
    is_there = (Path.home() / ".ray" / "auth_token").is_file() and "RAY_AUTH_MODE" not in os.environ
    return "; if it was started with a token, set RAY_AUTH_MODE=token" if is_there else ""


def _check_reached(address: str) -> None:
    """Raise UserError where nothing listens: Ray would try for minutes, with lines of its own."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or "/" in host:  # auto, or what Ray refuses at once
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"There is no Ray at {address}: {error}.") from error
