#!/usr/bin/env bash
# Runs the tests that need no engine on Python 3.14, in a container of Debian's unstable release, for machines whose
# own Python is older. The project is mounted read-only; a copy of it is tested. Arguments go to pytest:
#
#   scripts/test-python314.sh                      the unit tests, the contract suite and the adapters' tests
#   scripts/test-python314.sh tests/unit -k dsn    what the arguments select

set -euo pipefail

readonly IMAGE=sandboxio/python:sid
readonly BOUND_S=900
readonly AUTHORITIES=/etc/ssl/certs/ca-certificates.crt

project=$(cd "$(dirname "$0")/.." && pwd)
(($#)) || set -- tests/unit tests/contract tests/docs/test_readme.py packages
cache=${SBX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sandboxio}/python314
mkdir -p "$cache"

"$project/scripts/docker-image.sh" "$IMAGE" --suite sid --include python3,python3-venv

options=(--rm --network host --volume "$project:/project:ro" --volume "$cache:/cache"
    --env PIP_CACHE_DIR=/cache/pip --env UV_CACHE_DIR=/cache/uv --env UV_LINK_MODE=copy)
# The minimal image has no certificate authorities, and a company's own are only known to this machine.
if [[ -e $AUTHORITIES ]]; then
    options+=(--volume "$AUTHORITIES:$AUTHORITIES:ro" --env "SSL_CERT_FILE=$AUTHORITIES" --env "PIP_CERT=$AUTHORITIES")
fi

# shellcheck disable=SC2016  # expanded by the shell in the container
timeout -k 10 "$BOUND_S" docker run "${options[@]}" "$IMAGE" sh -euc '
    mkdir /copy
    tar -C /project --exclude ./.git --exclude ./.venv --exclude "*_cache" --exclude __pycache__ -c . | tar -C /copy -x
    cd /copy
    python3 -m venv /tools
    /tools/bin/pip install --quiet --disable-pip-version-check uv
    export PATH=/tools/bin:$PATH UV_PYTHON=/usr/bin/python3 UV_PYTHON_DOWNLOADS=never
    uv sync --quiet --frozen --all-packages --all-extras --group test
    uv run --no-sync python -VV
    # A test that stands still ends the run, with the stacks of its threads.
    exec uv run --no-sync pytest -q -o faulthandler_timeout=120 -o faulthandler_exit_on_timeout=true \
        -m "not docker and not gvisor and not bwrap and not bench" "$@"
' pytest "$@"
