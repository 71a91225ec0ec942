#!/usr/bin/env bash
# The second command on a bare machine: sets up with every extra, then runs every check but the tests marked slow.
# Arguments go to pytest: `bash run_tests.sh -m slow` runs those.
unset PYTHONDONTWRITEBYTECODE # hundreds of processes start: each would compile the whole project
EXTRAS="test maze vizdoom minatar box2d mujoco multi minari search cluster page page-test notebooks docs wandb mlflow trackio search-test malmo-test deploy-test"
source "$(dirname "${BASH_SOURCE[0]}")/scripts/setup.sh"
cd "$SETUP_ROOT"

failed=()
check() {
    printf '\n== %s\n' "$1"
    "${@:2}" || failed+=("$1")
}

tests() {
    "$PYTHON" -m pytest -n 3 "$@" && return
    (($? == 1)) || return
    printf '\n== What failed, once more and alone. What passes now is flaky on a busy machine: mend it all the same.\n'
    "$PYTHON" -m pytest --last-failed --last-failed-no-failures none "$@"
}

# The types take one core for half a minute: they are looked at while the tests run.
"$PYTHON" -m mypy >.mypy.log 2>&1 &
types=$!
types_fit() {
    wait "$types" && return
    cat .mypy.log
    return 1
}

check ruff "$PYTHON" -m ruff check .
check pytest tests -m "not slow" "$@"
check mypy types_fit

if ((${#failed[@]})); then
    printf '\nFailed after %d s: %s.\n' "$SECONDS" "${failed[*]}"
    exit 1
fi
printf '\nEvery check passed, in %d s.\n' "$SECONDS"
