#!/usr/bin/env bash
# Builds the image of the MCP server from this checkout. What it installs is gathered on the host, at the versions that
# uv.lock pins and with their hashes checked; the build itself has no network, so it works where an engine can reach nothing.

set -euo pipefail
cd "$(dirname "$0")/.."

readonly BUILD_S=600 # bound of the build
readonly CALL_S=60   # bound of any other client call
readonly NOT_HERE=3  # exit code where this machine lacks the base image or an index

usage() {
    cat <<'USAGE'
usage: scripts/mcp-image.sh [NAME:TAG] [--base IMAGE]

Builds docker/mcp/Dockerfile. Needs an engine, the uv of scripts/uv.sh, and an index to download wheels from.

  NAME:TAG        what to call it (default: sandboxio/mcp:dev)
  --base IMAGE    an image with python3 3.11 or newer that the engine has (default: sandboxio/python:bookworm, which
                  scripts/docker-image.sh makes)

exit codes: 0 built, 1 failure, 2 usage, 3 the base image or an index to download from is not there

environment:
  SBX_CACHE       where downloaded wheels are kept (default: ~/.cache/sandboxio)

example:
  scripts/mcp-image.sh example/sandboxio-mcp:1 --base python:3.12-slim
USAGE
}

say() { printf 'mcp-image: %s\n' "$*"; }
absent() { printf 'mcp-image: %s\n' "$*" >&2; exit "$NOT_HERE"; }
fail() { printf 'mcp-image: %s\n' "$*" >&2; exit 1; }
misuse() { printf 'mcp-image: %s\n\n' "$*" >&2; usage >&2; exit 2; }
client() { timeout -k 5 "$CALL_S" docker "$@"; }

parse_arguments() {
    image='' base=sandboxio/python:bookworm
    while (($#)); do
        case $1 in
            -h | --help) usage; exit 0 ;;
            --base) base=${2:-}; [[ -n $base ]] || misuse '--base takes an image'; shift 2 ;;
            -*) misuse "unknown option: $1" ;;
            *) [[ -z $image ]] || misuse 'one image at a time'; image=$1; shift ;;
        esac
    done
    image=${image:-sandboxio/mcp:dev}
}

# Version and machine decide which wheels fit, so they are asked and not assumed.
ask_base() {
    client image inspect "$base" >/dev/null 2>&1 || absent "the engine has no image $base; scripts/docker-image.sh makes one"
    read -r python_version machine < <(client run --rm --network none "$base" python3 -c \
        'import platform, sys; print("%d.%d" % sys.version_info[:2], platform.machine())') || fail "$base has no python3"
}

# Only wheels: building one would run code of others on the host.
gather_wheels() {
    local kept=${SBX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sandboxio}/wheels-$python_version
    local pins=$context/pins.txt
    mkdir -p "$kept" "$context/wheels"
    scripts/uv.sh export --quiet --frozen --extra mcp --extra e2b --no-emit-workspace \
        --format requirements.txt --output-file "$pins" >/dev/null
    python3 -m venv "$context/pip" || fail 'python3 needs its venv module'
    local download=("$context/pip/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps
        --only-binary :all: --python-version "$python_version" --find-links "$kept" --dest "$context/wheels")
    local tag
    for tag in manylinux_2_17 manylinux2014 manylinux_2_28 manylinux_2_34; do
        download+=(--platform "${tag}_$machine")
    done
    if ! { "${download[@]}" --require-hashes --requirement "$pins" && "${download[@]}" pip; }; then
        absent 'the wheels could not be downloaded; the lines above say why'
    fi
    cp -u "$context"/wheels/*.whl "$kept"
    scripts/uv.sh build --quiet --wheel --package sandboxio --out-dir "$context/wheels"
    scripts/uv.sh build --quiet --wheel --package sandboxio-e2b --out-dir "$context/wheels"
    rm -rf "$context/pip" "$pins" "$context/wheels/.gitignore"
}

parse_arguments "$@"
command -v docker >/dev/null || fail 'docker is not installed; scripts/docker-engine.sh up installs it'
client version >/dev/null 2>&1 || fail 'no engine answers; start one: sudo scripts/docker-engine.sh up'
ask_base
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
say "gathering wheels for Python $python_version"
gather_wheels
cp docker/mcp/Dockerfile "$context"
say "building $image on $base"
timeout -k 5 "$BUILD_S" docker build --quiet --network none --build-arg "BASE=$base" --tag "$image" "$context" >/dev/null ||
    fail 'the build failed; its last lines are above'
say "$image is ready; to try it: docker run -i --rm -e E2B_API_KEY $image"
