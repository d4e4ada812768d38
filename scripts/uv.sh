#!/usr/bin/env bash
# Runs uv with the given arguments. Where it is not installed, it is put into `.uv/` of this checkout first.

set -euo pipefail

local_folder=$(cd "$(dirname "$0")/.." && pwd)/.uv

say() { printf 'uv.sh: %s\n' "$*" >&2; }

# A version manager's shim can be on PATH without a uv behind it, so it has to answer.
if uv --version >/dev/null 2>&1; then
    exec uv "$@"
fi

if ! "$local_folder/bin/uv" --version >/dev/null 2>&1; then
    say "uv is not installed; putting it into $local_folder"
    if ! python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        say 'this needs python3 (3.11 or newer) with its venv module'
        say 'Debian and Ubuntu: apt-get install -y python3-venv   macOS: brew install python'
        exit 1
    fi
    python3 -m venv --clear "$local_folder"
    "$local_folder/bin/python" -m pip install --quiet --disable-pip-version-check uv
fi
# What uv starts may need uv as well.
export PATH="$local_folder/bin:$PATH"
exec "$local_folder/bin/uv" "$@"
