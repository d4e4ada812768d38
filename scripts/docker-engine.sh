#!/usr/bin/env bash
# Brings up a Docker Engine from Debian's or Ubuntu's own packages, for machines that have none.
#
# An engine that already answers is left alone. Everything this script keeps (log, pid files, certificates,
# configuration) lives in one state folder, and `down` ends only what `up` started.

set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin  # not everybody's PATH has them

readonly WAIT_S=60          # bound of a start or a stop
readonly LOCK_S=600         # bound of waiting for another run, which may be installing packages
readonly PING_S=5           # bound of one client call: a client can hang when the engine does
readonly CERTIFICATE_DAYS=30

usage() {
    cat <<'USAGE'
usage: scripts/docker-engine.sh up [options]     start an engine unless one answers already (as root)
       scripts/docker-engine.sh down [--userns-remap]      end the engine that `up` started
       scripts/docker-engine.sh status [--userns-remap]    say what runs, and where

options of up:
  --tcp 127.0.0.1:PORT   serve plain TCP as well; every user of this machine can then become root
  --tls 127.0.0.1:PORT   serve TLS with client certificates as well
  --tls-dir DIR          where ca.pem, cert.pem and key.pem for clients go (default: STATE/tls)
  --gvisor               install gVisor and register it as the runtime `runsc`
  --gvisor-uncapped      the same, and a runtime `runsc-uncapped` (--ignore-cgroups), to test that it is refused
  --userns-remap         a second engine that maps root to an ordinary user, with its own socket and images

environment:
  SBX_ENGINE_STATE       the state folder (default: /var/lib/sandboxio-engine)
  SBX_DEBIAN_MIRROR      where --gvisor finds Debian 13 (default: the mirror of this machine's own packages)
USAGE
}

say() { printf 'docker-engine: %s\n' "$*"; }
fail() { printf 'docker-engine: %s\n' "$*" >&2; exit 1; }
misuse() { printf 'docker-engine: %s\n\n' "$*" >&2; usage >&2; exit 2; }

parse_arguments() {
    command=${1:-}
    case $command in
        up | down | status) shift ;;
        -h | --help) usage; exit 0 ;;
        '') misuse 'a command is missing' ;;
        *) misuse "unknown command: $command" ;;
    esac
    tcp='' tls='' tls_dir='' gvisor='' uncapped='' remap=''
    while (($#)); do
        case $1 in
            --userns-remap) remap=yes; shift; continue ;;
            -h | --help) usage; exit 0 ;;
        esac
        [[ $command == up ]] || misuse "$command does not take $1"
        case $1 in
            --tcp) tcp=$(loopback_address "${2:-}") || misuse '--tcp takes 127.0.0.1:PORT'; shift 2 ;;
            --tls) tls=$(loopback_address "${2:-}") || misuse '--tls takes 127.0.0.1:PORT'; shift 2 ;;
            --tls-dir) tls_dir=${2:-}; [[ -n $tls_dir ]] || misuse '--tls-dir takes a folder'; shift 2 ;;
            --gvisor) gvisor=yes; shift ;;
            --gvisor-uncapped) gvisor=yes uncapped=yes; shift ;;
            *) misuse "unknown option: $1" ;;
        esac
    done
    [[ -z $tls_dir || -n $tls ]] || misuse '--tls-dir needs --tls'
    [[ -z $gvisor || -z $remap ]] || misuse '--gvisor and --userns-remap exclude each other'
}

# Beyond loopback, an engine's address is a root shell for the whole network.
loopback_address() {
    [[ $1 =~ ^127\.0\.0\.1:([0-9]{1,5})$ ]] && ((10#${BASH_REMATCH[1]} >= 1 && 10#${BASH_REMATCH[1]} <= 65535)) &&
        printf '%s' "$1"
}

choose_paths() {
    state=$(realpath -m "${SBX_ENGINE_STATE:-/var/lib/sandboxio-engine}")
    exec_root=/var/run/docker
    engine_pid_file=/var/run/docker.pid
    socket=/var/run/docker.sock
    if [[ -n $remap ]]; then
        state=$state/userns-remap
        exec_root=$state/run
        engine_pid_file=$state/engine.pid
        socket=$state/docker.sock
    fi
    tls_dir=$(realpath -m "${tls_dir:-$state/tls}")
    log=$state/dockerd.log
}

# --- what runs -----------------------------------------------------------------------------------------------

# Prints the version of the engine at an address, or fails. Without an address: the one docker itself would use.
engine_version() {
    local client=(docker)
    # What the environment says about TLS belongs to the environment's own address.
    (($# == 0)) || client=(env -u DOCKER_TLS -u DOCKER_TLS_VERIFY docker --host "$1")
    command -v docker >/dev/null &&
        timeout -k 1 "$PING_S" "${client[@]}" version --format '{{.Server.Version}}' 2>/dev/null
}

# The second engine is never where docker looks by itself.
answering_engine() {
    if [[ -n $remap ]]; then engine_version "unix://$socket"; else engine_version; fi
}

# Fails unless the pid in the file belongs to a live process of that name; prints the pid.
live_pid() {
    local file=$1 name=$2 pid
    pid=$(cat "$file" 2>/dev/null) || return 1
    [[ $pid =~ ^[0-9]+$ && $(cat "/proc/$pid/comm" 2>/dev/null) == "$name" ]] || return 1
    # A zombie has ended; only its parent has not noticed.
    [[ $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) != Z* ]] && printf '%s' "$pid"
}

# An engine killed hard leaves these files behind, and the next one refuses to start over them.
remove_stale_pid_file() {
    local file=$1 name=$2
    if [[ -e $file ]] && ! live_pid "$file" "$name" >/dev/null; then
        say "removing the stale $file"
        rm -f "$file"
    fi
}

clear_the_way() {
    local pid
    if pid=$(live_pid "$engine_pid_file" dockerd); then
        fail "dockerd runs already (pid $pid, $engine_pid_file) but does not answer; end it first"
    fi
    stop socat # it relayed to an engine that is no more
    remove_stale_pid_file "$engine_pid_file" dockerd
    # A containerd that outlived its engine is no obstacle: the next dockerd takes it over.
    remove_stale_pid_file "$exec_root/containerd/containerd.pid" containerd
}

# --- packages ------------------------------------------------------------------------------------------------

install_packages() {
    local missing=()
    command -v dockerd >/dev/null || missing+=(docker.io)
    command -v iptables >/dev/null || missing+=(iptables)
    [[ -z $tcp ]] || command -v socat >/dev/null || missing+=(socat)
    [[ -z $tls ]] || command -v openssl >/dev/null || missing+=(openssl)
    if ((${#missing[@]})); then apt_install "${missing[@]}"; fi
    # From Debian 13 on the client is a package of its own.
    command -v docker >/dev/null || apt_install docker-cli
}

apt_install() {
    command -v apt-get >/dev/null || fail "cannot install $*: this is neither Debian nor Ubuntu"
    say "installing $* from the distribution's packages"
    apt-get update -qq || say 'apt-get update failed; trying with the package lists at hand'
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null ||
        fail "apt-get could not install $*"
}

# --- certificates --------------------------------------------------------------------------------------------

# One authority, one server and one client certificate. The authority's key is deleted: nothing else is ever signed.
make_certificates() {
    local work
    work=$(mktemp -d)
    (
        trap 'rm -rf "$work"' EXIT
        umask 077
        # Under sudo the client is whoever called it.
        [[ -d $tls_dir ]] || { mkdir -p "$tls_dir" && chown "${SUDO_UID:-0}" "$tls_dir"; }
        mkdir -p "$state/tls-server"
        cd "$work"
        openssl req -x509 -newkey rsa:2048 -nodes -days "$CERTIFICATE_DAYS" -keyout ca-key.pem -out ca.pem \
            -subj '/CN=sandboxio engine authority' -addext 'keyUsage=critical,keyCertSign,cRLSign'
        sign server '/CN=localhost' 'extendedKeyUsage=serverAuth' 'subjectAltName=IP:127.0.0.1,DNS:localhost'
        sign client '/CN=sandboxio client' 'extendedKeyUsage=clientAuth'
        cp ca.pem "$state/tls-server/ca.pem"
        cp server-cert.pem "$state/tls-server/cert.pem"
        cp server-key.pem "$state/tls-server/key.pem"
        cp ca.pem "$tls_dir/ca.pem"
        cp client-cert.pem "$tls_dir/cert.pem"
        cp client-key.pem "$tls_dir/key.pem"
        chown "${SUDO_UID:-0}" "$tls_dir"/{ca,cert,key}.pem
    ) 2>>"$log" || fail "openssl failed; see $log"
    say "certificates for clients are in $tls_dir"
}

sign() {
    local name=$1 subject=$2
    shift 2
    openssl req -newkey rsa:2048 -nodes -keyout "$name-key.pem" -out "$name.csr" -subj "$subject"
    printf '%s\n' 'basicConstraints=critical,CA:FALSE' 'keyUsage=critical,digitalSignature,keyEncipherment' \
        'subjectKeyIdentifier=hash' 'authorityKeyIdentifier=keyid' "$@" >"$name.ext"
    openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days "$CERTIFICATE_DAYS" \
        -out "$name-cert.pem" -extfile "$name.ext"
}

# --- up ------------------------------------------------------------------------------------------------------

requested() { printf '%s\n' "tcp=$tcp" "tls=$tls" "certificates=${tls:+$tls_dir}" "gvisor=$gvisor$uncapped"; }

# Ends the script when an engine answers: with success only if it is what was asked for.
leave_a_running_engine_alone() {
    local version nothing_special=$'tcp=\ntls=\ncertificates=\ngvisor='
    version=$(answering_engine) || return 0
    if [[ $(requested) != "$nothing_special" ]] && ! is_ours_as_requested; then
        fail "an engine ($version) answers already, started without these options; end it first"
    fi
    say "an engine ($version) answers already; nothing to do"
    exit 0
}

is_ours_as_requested() {
    live_pid "$state/dockerd.pid" dockerd >/dev/null &&
        [[ $(requested) == "$(cat "$state/requested" 2>/dev/null)" ]]
}

start_engine() {
    local launcher=() arguments=(--host "unix://$socket" --pidfile "$engine_pid_file" --exec-root "$exec_root")
    if [[ -n $tls ]]; then
        make_certificates
        arguments+=(--host "tcp://$tls" --tlsverify --tlscacert "$state/tls-server/ca.pem"
            --tlscert "$state/tls-server/cert.pem" --tlskey "$state/tls-server/key.pem")
    fi
    if [[ -n $gvisor ]]; then
        configure_gvisor
        arguments+=(--config-file "$state/daemon.json")
    fi
    if [[ -n $remap ]]; then
        arguments+=(--userns-remap default --data-root "$state/data" --bridge none --iptables=false)
        # An engine without a bridge removes the bridge of another one, so it gets a network of its own to do that in.
        launcher=(unshare --net)
    fi
    say "starting dockerd; its log is $log"
    start_in_background dockerd "$log" "${launcher[@]}" dockerd "${arguments[@]}"
    await_engine
}

# Runs a program in a session of its own, so that it outlives this shell, and keeps its pid.
start_in_background() {
    local name=$1 output=$2
    shift 2
    setsid "$@" </dev/null >>"$output" 2>&1 9>&- &
    printf '%s\n' "$!" >"$state/$name.pid"
    # Until the program has replaced the shell and setsid, it does not carry its name.
    local deadline=$((SECONDS + WAIT_S))
    until live_pid "$state/$name.pid" "$name" >/dev/null; do
        kill -0 "$!" 2>/dev/null && ((SECONDS < deadline)) || return 0
        sleep 0.05
    done
}

await_engine() {
    local deadline=$((SECONDS + WAIT_S))
    until version=$(engine_version "unix://$socket"); do
        live_pid "$state/dockerd.pid" dockerd >/dev/null || give_up 'dockerd ended'
        ((SECONDS < deadline)) || give_up "dockerd does not answer after $WAIT_S s"
        sleep 0.2
    done
}

give_up() {
    tail -n 20 "$log" >&2
    stop_everything
    fail "$1; the end of $log is above"
}

# dockerd cannot serve TLS on one address and plain TCP on another, so plain TCP is a relay to the unix socket.
# -t: a client that closes its half (the end of stdin) still gets the rest of its output.
start_relay() {
    local port=${tcp#*:}
    start_in_background socat "$state/socat.log" socat -t 86400 -b 131072 \
        "TCP4-LISTEN:$port,bind=127.0.0.1,reuseaddr,fork,backlog=128,nodelay" "UNIX-CONNECT:$socket"
    local deadline=$((SECONDS + 10))
    until engine_version "tcp://$tcp" >/dev/null || ((SECONDS >= deadline)); do sleep 0.1; done
    # Asked last: where the port is taken, somebody else may have answered.
    if ! live_pid "$state/socat.pid" socat >/dev/null; then
        tail -n 5 "$state/socat.log" >&2
        stop_everything
        fail "the relay at $tcp did not start"
    fi
}

up() {
    leave_a_running_engine_alone
    ((EUID == 0)) || fail "no engine answers $(id -un), and starting one needs root: sudo scripts/docker-engine.sh up"
    mkdir -p "$state"
    exec 9>"$state/lock"
    flock -w "$LOCK_S" 9 || fail "another run holds $state/lock"
    install_packages
    # Another run, or the package's own service, may have started one in the meantime.
    leave_a_running_engine_alone
    clear_the_way
    : >"$log"
    requested >"$state/requested"
    start_engine
    if [[ -n $tcp ]]; then : >"$state/socat.log"; start_relay; fi
    report_addresses
    answering_engine >/dev/null ||
        say "docker looks elsewhere (${DOCKER_HOST:-its current context}); set DOCKER_HOST to use this engine"
}

report_addresses() {
    say "engine $version is up: DOCKER_HOST=unix://$socket"
    if [[ -n $tcp ]]; then say "plain TCP: DOCKER_HOST=tcp://$tcp"; fi
    if [[ -n $tls ]]; then say "TLS: DOCKER_HOST=tcp://$tls DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=$tls_dir"; fi
}

# --- gVisor --------------------------------------------------------------------------------------------------

configure_gvisor() {
    [[ ! -e /etc/docker/daemon.json ]] ||
        fail '/etc/docker/daemon.json exists; add the runtime runsc to it yourself'
    local runsc=$state/gvisor/usr/bin/runsc more=''
    [[ -x $runsc ]] || install_gvisor
    if [[ -n $uncapped ]]; then
        more=", \"runsc-uncapped\": {\"path\": \"$runsc\",
            \"runtimeArgs\": [\"--platform=systrap\", \"--network=none\", \"--ignore-cgroups\"]}"
    fi
    cat >"$state/daemon.json" <<JSON
{"runtimes": {"runsc": {"path": "$runsc", "runtimeArgs": ["--platform=systrap", "--network=none"]}$more}}
JSON
}

# From Debian 13, because the release before it has no working systrap. It is unpacked into the state folder by way
# of a package list of its own, so neither this machine's sources nor its installed packages change.
install_gvisor() {
    local apt=$state/gvisor-apt keyring=/usr/share/keyrings/debian-archive-keyring.gpg mirror
    mirror=$(debian_mirror)
    [[ -e $keyring ]] || apt_install debian-archive-keyring
    say 'fetching gVisor (runsc) from Debian 13'
    rm -rf "$apt"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources.d" "$state/gvisor"
    printf 'deb [signed-by=%s] %s trixie main\n' "$keyring" "$mirror" >"$apt/sources.list"
    local options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o "Dir::Etc::SourceParts=$apt/sources.d"
        -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update -qq || fail 'the package list of Debian 13 cannot be fetched'
    (cd "$apt/cache" && apt-get "${options[@]}" download -qq runsc) || fail 'runsc cannot be fetched'
    dpkg-deb --extract "$apt"/cache/runsc_*.deb "$state/gvisor"
    rm -rf "$apt"
}

# The mirror that this machine's own packages come from.
debian_mirror() {
    local mirrors=("${SBX_DEBIAN_MIRROR:-}")
    # shellcheck disable=SC2016  # apt-get fills in the field
    [[ -n ${mirrors[0]} ]] || mapfile -t mirrors < <(apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' 'Origin: Debian' 'Label: Debian')
    [[ -n ${mirrors[0]:-} ]] || fail 'no mirror of Debian is known here; name one in SBX_DEBIAN_MIRROR'
    printf '%s' "${mirrors[0]}"
}

# --- down and status -----------------------------------------------------------------------------------------

down() {
    if ! { live_pid "$state/dockerd.pid" dockerd || live_pid "$state/socat.pid" socat; } >/dev/null; then
        say 'no engine of this script runs; nothing to do'
        return
    fi
    ((EUID == 0)) || fail 'ending the engine needs root'
    stop_everything
    say 'the engine is down'
}

stop_everything() {
    stop socat
    stop dockerd
}

# Asks, waits, and insists only at the end: dockerd ends its containers and its containerd on the way.
stop() {
    local name=$1 pid deadline=$((SECONDS + WAIT_S))
    pid=$(live_pid "$state/$name.pid" "$name") || { rm -f "$state/$name.pid"; return 0; }
    kill -TERM -- "-$pid" 2>/dev/null || true
    while live_pid "$state/$name.pid" "$name" >/dev/null; do
        if ((SECONDS >= deadline)); then
            say "$name (pid $pid) does not end; killing it"
            kill -KILL -- "-$pid" 2>/dev/null || true
            break
        fi
        sleep 0.1
    done
    rm -f "$state/$name.pid"
}

status() {
    local pid version
    if pid=$(live_pid "$state/dockerd.pid" dockerd); then
        version=$(engine_version "unix://$socket") || fail "dockerd runs (pid $pid) but does not answer; see $log"
        say "the engine of this script runs (pid $pid, version $version) at unix://$socket; its log is $log"
        sed -n -e 's|^tcp=\(.\)|plain TCP: \1|p' -e 's|^tls=\(.\)|TLS: \1|p' "$state/requested"
    elif version=$(answering_engine); then
        say "an engine ($version) that this script did not start answers"
    else
        fail 'no engine answers'
    fi
}

parse_arguments "$@"
choose_paths
"$command"
