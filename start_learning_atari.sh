#!/usr/bin/env bash
# The first command on a bare machine: sets up once, then runs Redis, the learner and the actors in this terminal.
# Every argument goes to start_learning.py; try --help. A game that needs an extra of the set-up gets it, whether the game is
# given here or in a spec; EXTRAS="maze vizdoom" adds others (see scripts/setup.sh).
for word in "$@"; do
    word=${word#--*=}
    [[ $word != *.y*ml || ! -f $word ]] || word=$(sed -n "s/^game: *[\"']*\([^\"' ]*\).*/\1/p" "$word")
    IFS=, read -ra games <<<"$word"
    for game in "${games[@]}"; do
        case $game in
            maze | maze:*) EXTRAS="${EXTRAS:-} maze" ;;
            vizdoom:*) EXTRAS="${EXTRAS:-} vizdoom" ;;
            minatar:*) EXTRAS="${EXTRAS:-} minatar" ;;
            pettingzoo:*) EXTRAS="${EXTRAS:-} multi" ;;
            unity:3dball | unity:gridworld) EXTRAS="${EXTRAS:-} unity" ;;
            LunarLander* | BipedalWalker* | CarRacing*) EXTRAS="${EXTRAS:-} box2d" ;;
            Reacher-v* | Pusher-v* | InvertedPendulum-v* | InvertedDoublePendulum-v* | HalfCheetah-v* | Hopper-v* | Swimmer-v* | \
                Walker2d-v* | Ant-v* | Humanoid-v* | HumanoidStandup-v*) EXTRAS="${EXTRAS:-} mujoco" ;;
        esac
    done
done
TERMINAL_PATH=$PATH # the last lines are for this terminal, in which the set-up enters no environment
source "$(dirname "${BASH_SOURCE[0]}")/scripts/setup.sh"
START_COMMAND="bash $(printf %q "${BASH_SOURCE[0]}")" # for the last line, which says how to go on
export START_COMMAND TERMINAL_PATH
exec "$PYTHON" "$SETUP_ROOT/start_learning.py" "$@"
