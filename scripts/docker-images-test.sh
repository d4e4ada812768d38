#!/usr/bin/env bash
# Makes the images that the Docker tests run on, without a registry. An image that is there already stays.
#
#   sandboxio/python:bookworm   Debian with python3; its user is root because nothing else is said
#   sandboxio/rootuser:test     the same, with root as its explicit user
#   sandboxio/user:test         the same, with an ordinary user given by name (app, uid 12345)
#   sandboxio/busybox:test      a POSIX shell and busybox's applets, no Python
#   sandboxio/noshell:test      a few programs and no shell at all

set -euo pipefail

readonly PYTHON=sandboxio/python:bookworm
readonly NOSHELL_PROGRAMS=(cat echo env false head id ls printf sleep true yes)
readonly CALL_S=120 # bound of one client call: a client can hang when the engine does

say() { printf 'docker-images-test: %s\n' "$*"; }
fail() { printf 'docker-images-test: %s\n' "$*" >&2; exit 1; }
client() { timeout -k 5 "$CALL_S" docker "$@"; }
is_there() { client image inspect "$1" >/dev/null 2>&1; }

# Derives an image from the Python one: runs a command in it as root, and commits the result with another user.
make_derived() {
    local image=$1 user=$2 command=$3 container
    is_there "$image" && return
    container=$(client create --network none --user 0 "$PYTHON" sh -ec "$command")
    if client start --attach "$container" >&2; then
        client commit --change "USER $user" --change 'CMD ["python3"]' "$container" "$image" >/dev/null
    else
        client rm --force "$container" >/dev/null
        fail "$image could not be derived from $PYTHON"
    fi
    client rm "$container" >/dev/null
    say "$image is ready"
}

# A static busybox is one program that is whatever its name says: an image is a handful of links to it.
fetch_busybox() {
    [[ -x $work/busybox ]] && return
    apt-get update -qq || say 'apt-get update failed; trying with the package lists at hand'
    (cd "$work" && apt-get download -qq -o APT::Sandbox::User=root busybox-static) ||
        fail 'busybox-static cannot be fetched'
    dpkg-deb --extract "$work"/busybox-static_*.deb "$work/package"
    # Releases differ in whether it lies in bin or in usr/bin.
    find "$work/package" -type f -path '*/bin/busybox' -exec cp {} "$work/busybox" \;
    [[ -x $work/busybox ]] || fail 'busybox-static holds no busybox'
}

# The first program is the file itself, and the others are links to it.
make_busybox_image() {
    local image=$1 root=$work/root first=$2 program
    shift 2
    rm -rf "$root"
    mkdir -p "$root"/{bin,etc,tmp,usr}
    chmod 1777 "$root/tmp"
    ln -s ../bin "$root/usr/bin"
    printf 'root:x:0:0:root:/:/bin/%s\n' "$first" >"$root/etc/passwd"
    printf 'root:x:0:\n' >"$root/etc/group"
    cp "$work/busybox" "$root/bin/$first"
    for program in "$@"; do
        [[ $program == "$first" ]] || ln -s "$first" "$root/bin/$program"
    done
    tar --numeric-owner --owner 0 --group 0 -C "$root" -c . | client import - "$image" >/dev/null
    say "$image is ready"
}

(($# == 0)) || { printf 'usage: scripts/docker-images-test.sh\n' >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$(dirname "$0")/docker-image.sh" "$PYTHON"
make_derived sandboxio/rootuser:test root true
make_derived sandboxio/user:test app 'groupadd --gid 12345 app && useradd --uid 12345 --gid 12345 --create-home app'
if ! is_there sandboxio/busybox:test; then
    fetch_busybox
    mapfile -t applets < <("$work/busybox" --list)
    make_busybox_image sandboxio/busybox:test busybox "${applets[@]}"
fi
if ! is_there sandboxio/noshell:test; then
    fetch_busybox
    make_busybox_image sandboxio/noshell:test "${NOSHELL_PROGRAMS[@]}"
fi
say 'every test image is there'
