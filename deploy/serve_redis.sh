#!/usr/bin/env bash
# A Redis server that other machines reach, and that asks them for the password in a file; without one it does not start.
#
#     bash deploy/serve_redis.sh PASSWORD_FILE CONFIGURATION [flags of redis-server]
#
# The password reaches the server on its standard input: `ps` shows command lines to everybody.
set -euo pipefail
password=$(cat "$1")
configuration=$2
shift 2
if ! [[ $password =~ ^[A-Za-z0-9]{16,}$ ]]; then
    echo "error: the password of Redis must be 16 letters and digits or more: openssl rand -hex 32 makes one." >&2
    exit 2
fi
exec redis-server - "$@" < <(cat "$configuration" && printf '\nbind 0.0.0.0\nrequirepass %s\n' "$password")
