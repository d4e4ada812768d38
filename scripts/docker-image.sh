#!/usr/bin/env bash
# Makes a Docker image with Python in it where no image registry can be reached: a minimal Debian from a package
# mirror, imported into the engine. What was built is kept in a cache folder, so the next import needs no network.

set -euo pipefail

readonly CALL_S=300 # bound of one client call: a client can hang when the engine does

usage() {
    cat <<'USAGE'
usage: scripts/docker-image.sh [NAME:TAG] [--suite SUITE] [--include PACKAGE,PACKAGE...]

Makes the image unless the engine has one of that name. As root on Debian or Ubuntu.

  NAME:TAG             what to call it (default: sandboxio/python:bookworm)
  --suite SUITE        the Debian release (default: bookworm)
  --include PACKAGES   what is installed besides the minimum (default: python3)

environment:
  SBX_CACHE            where the built file systems are kept (default: ~/.cache/sandboxio)
  SBX_DEBIAN_MIRROR    the package mirror to use (default: Debian's own)

example:
  scripts/docker-image.sh example/numpy:bookworm --include python3,python3-numpy
USAGE
}

say() { printf 'docker-image: %s\n' "$*"; }
fail() { printf 'docker-image: %s\n' "$*" >&2; exit 1; }
misuse() { printf 'docker-image: %s\n\n' "$*" >&2; usage >&2; exit 2; }
client() { timeout -k 5 "$CALL_S" docker "$@"; }

parse_arguments() {
    image='' suite=bookworm packages=python3
    while (($#)); do
        case $1 in
            -h | --help) usage; exit 0 ;;
            --suite) suite=${2:-}; shift 2 || misuse '--suite takes a name' ;;
            --include) packages=${2:-}; shift 2 || misuse '--include takes packages' ;;
            -*) misuse "unknown option: $1" ;;
            *) [[ -z $image ]] || misuse 'one image at a time'; image=$1; shift ;;
        esac
    done
    image=${image:-sandboxio/python:bookworm}
    local name='[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*'
    [[ $image =~ ^$name(/$name)*:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$ ]] || misuse 'an image is named NAME:TAG'
    [[ $suite =~ ^[a-z][a-z-]*$ ]] || misuse "not a release of Debian: '$suite'"
    [[ $packages =~ ^[a-z0-9][a-z0-9+.-]*(,[a-z0-9][a-z0-9+.-]*)*$ ]] || misuse "not a list of packages: '$packages'"
}

# Other packages make another file system, so they are part of the file's name.
choose_cache_file() {
    local cache=${SBX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sandboxio} digest
    digest=$(printf '%s %s' "$packages" "${SBX_DEBIAN_MIRROR:-}" | sha256sum)
    mkdir -p "$cache"
    root_file_system=$cache/debian-$suite-$(dpkg --print-architecture)-${digest:0:12}.tar
}

install_debootstrap() {
    local missing=()
    command -v debootstrap >/dev/null || missing+=(debootstrap)
    # Ubuntu does not carry the key that Debian's packages are signed with.
    [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || missing+=(debian-archive-keyring)
    ((${#missing[@]})) || return 0
    say "installing ${missing[*]} from the distribution's packages"
    apt-get update -qq || say 'apt-get update failed; trying with the package lists at hand'
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null ||
        fail "apt-get could not install ${missing[*]}"
}

# Builds beside the target and renames, so that an interrupted build never looks like a finished one.
build_root_file_system() {
    ((EUID == 0)) || fail "building an image needs root: sudo scripts/docker-image.sh $image"
    command -v apt-get >/dev/null || fail 'building an image needs Debian or Ubuntu'
    install_debootstrap
    say "building Debian $suite with $packages; this takes about a minute"
    local started=$SECONDS mirror=()
    [[ -z ${SBX_DEBIAN_MIRROR:-} ]] || mirror=("$SBX_DEBIAN_MIRROR")
    work=$(mktemp -d "$root_file_system.XXXXXX")
    # debootstrap may leave /proc mounted when it is interrupted: stay on this file system.
    trap 'rm -rf --one-file-system "$work"' EXIT
    debootstrap --variant=minbase --include="$packages" --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
        "$suite" "$work/root" "${mirror[@]}" >"$work/log" 2>&1 || {
        tail -n 20 "$work/log" "$work/root/debootstrap/debootstrap.log" >&2 || true # the second may be missing
        fail 'debootstrap failed; its last lines are above'
    }
    rm -rf "$work"/root/var/lib/apt/lists/* "$work"/root/var/cache/apt/* "$work"/root/var/log/*
    tar --numeric-owner -C "$work/root" -cf "$work/root.tar" .
    mv "$work/root.tar" "$root_file_system"
    say "built in $((SECONDS - started)) s and kept as $root_file_system"
}

parse_arguments "$@"
command -v docker >/dev/null || fail 'docker is not installed; scripts/docker-engine.sh up installs it'
client version >/dev/null 2>&1 || fail 'no engine answers; start one: sudo scripts/docker-engine.sh up'
if client image inspect "$image" >/dev/null 2>&1; then
    say "$image is there already; nothing to do"
    exit 0
fi
choose_cache_file
[[ -e $root_file_system ]] || build_root_file_system
say "importing $root_file_system"
client import --change 'ENV LANG=C.UTF-8' --change 'CMD ["python3"]' "$root_file_system" "$image" >/dev/null
say "$image is ready; to use it by default: export SBX_DOCKER_IMAGE=$image"
