#!/bin/sh
# Makes a fresh machine ready: looks for what is missing and installs it with the system's package manager.
# Silent when nothing is missing. What it cannot install it names in one sentence, and exits 1.
#
#   tools/setup.sh        what `make run` needs: Go, and PostgreSQL's server programs
#   tools/setup.sh test   what `make test` needs: those, a C compiler for the race detector, and Redis, which the tests
#                         of locks start themselves (without it, or a REDIS_URL, they are skipped and say so), with
#                         redis-cli and redis-py, which the tests of the door for clients of Redis use
#
# SETUP_ROOT stands before the folders looked into outside PATH, so that a test can show an empty machine.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
want_go=1.26
want_postgres=15
: "${SETUP_ROOT:=}"
: "${GOTOOLCHAIN:=auto}"
export GOTOOLCHAIN
PATH=$PATH:$SETUP_ROOT/usr/local/go/bin

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# at_least VERSION MINIMUM: both as MAJOR or MAJOR.MINOR, anything after that is ignored.
at_least() {
  awk -v have="$1" -v want="$2" 'BEGIN {
    split(have, h, "."); split(want, w, ".")
    exit !(h[1] + 0 > w[1] + 0 || (h[1] + 0 == w[1] + 0 && h[2] + 0 >= w[2] + 0))
  }'
}

# --- The package manager -------------------------------------------------------------------------------------------

manager() {
  for m in apt-get dnf apk brew; do
    if have "$m"; then echo "$m"; return; fi
  done
  echo none
}

# as_root COMMAND...: through sudo where needed; without a terminal it must not ask for a password.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif have sudo; then
    if [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
  else
    say "'$*' needs root, and there is no sudo."
    return 1
  fi
}

# install PACKAGE...: quiet, without questions; what the package manager prints is shown only if it fails.
install() {
  say "installing $* with $pm"
  if ! install_with "$@" >"$scratch/log" 2>&1; then
    cat "$scratch/log" >&2
    return 1
  fi
}

install_with() {
  case $pm in
    apt-get) as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" ;;
    dnf) as_root dnf install -q -y "$@" ;;
    apk) as_root apk add --quiet "$@" ;;
    brew) brew install --quiet "$@" ;;
    *) return 1 ;;
  esac
}

# apt_offers PACKAGE: the version that apt would install, without epoch ("2:1.24~2" is 1.24~2); empty if none.
apt_offers() {
  apt-cache policy "$1" | sed -n 's/^ *Candidate: *\([0-9]*:\)\{0,1\}\([0-9].*\)/\2/p'
}

# The package lists of a new machine are empty or old. An update that fails (no network) leaves them as they are.
apt_update() {
  [ "${apt_updated:-}" ] && return
  apt_updated=yes
  say "reading the package lists with apt-get update"
  as_root apt-get update -qq >/dev/null 2>&1 || say "apt-get update failed, going on with the lists that are here"
}

# --- Go ------------------------------------------------------------------------------------------------------------

# Asked inside the module: from 1.21 on a go command fetches the toolchain that go.mod names by itself. That can take
# minutes, so its line about the download is let through (to stderr, past the version on descriptor 3).
go_version() {
  { (cd "$here" && go env GOVERSION 2>&1 >&3) | sed -n '/^go: downloading/p' >&2; } 3>&1 | sed 's/^go//'
}
go_ok() { have go && at_least "$(go_version)" $want_go; }

install_go() {
  case $pm in
    apt-get)
      apt_update
      offered=$(apt_offers golang-go)
      if at_least "${offered:-0}" 1.21; then install golang-go ca-certificates; fi
      ;;
    dnf) install golang ;;
    apk | brew) install go ;;
  esac
}

ensure_go() {
  go_ok && return
  install_go || true
  hash -r
  go_ok && return
  found="there is none"
  if have go; then
    found="this one is $(cd / && go env GOVERSION 2>/dev/null || echo older)"
    (cd "$here" && go env GOVERSION >/dev/null) || true # its own words, where fetching the newer toolchain failed
  fi
  die "Go $want_go or newer is needed, and $found: install it from https://go.dev/dl/ and run this again."
}

# --- PostgreSQL ----------------------------------------------------------------------------------------------------

# The folders in which server programs stand: PATH, pg_config, Debian, PGDG's RPMs, Alpine, Homebrew, Postgres.app.
postgres_folders() {
  if have postgres; then dirname "$(command -v postgres)"; fi
  if have pg_config; then pg_config --bindir 2>/dev/null || true; fi
  for dir in "$SETUP_ROOT"/usr/lib/postgresql/*/bin "$SETUP_ROOT"/usr/pgsql-*/bin \
    "$SETUP_ROOT"/usr/libexec/postgresql* "$SETUP_ROOT"/opt/homebrew/opt/postgresql*/bin \
    "$SETUP_ROOT"/usr/local/opt/postgresql*/bin "$SETUP_ROOT"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin \
    "$SETUP_ROOT"/Applications/Postgres.app/Contents/Versions/*/bin; do
    if [ -d "$dir" ]; then echo "$dir"; fi
  done
}

postgres_ok() {
  postgres_folders >"$scratch/folders"
  while read -r dir; do
    if ! [ -x "$dir/initdb" ] || ! [ -x "$dir/postgres" ]; then continue; fi
    version=$("$dir/postgres" --version | sed 's/[^0-9]*//')
    if at_least "${version:-0}" $want_postgres; then return 0; fi
  done <"$scratch/folders"
  return 1
}

# Debian's package makes a cluster, starts it and keeps it running, which nobody asked for here. Its configuration
# has a drop-in folder for that: our line stands in it during the installation only.
dropin=$SETUP_ROOT/etc/postgresql-common/createcluster.d

install_postgres_apt() {
  apt_update
  offered=$(apt_offers postgresql)
  at_least "${offered:-0}" $want_postgres || return 0
  install postgresql-common || return
  as_root mkdir -p "$dropin"
  echo 'create_main_cluster = false' | as_root tee "$dropin/allocator-setup.conf" >/dev/null
  status=0
  install postgresql || status=$?
  remove_dropin
  return $status
}

remove_dropin() {
  if ! [ -f "$dropin/allocator-setup.conf" ]; then return; fi
  as_root rm -f "$dropin/allocator-setup.conf"
  as_root rmdir "$dropin" 2>/dev/null || true
}

# RHEL 9 offers 13 unless a newer stream is chosen; elsewhere there is no such module, and that is fine.
install_postgres_dnf() {
  as_root dnf -q -y module enable postgresql:16 >/dev/null 2>&1 || true
  install postgresql-server
}

ensure_postgres() {
  postgres_ok && return
  case $pm in
    apt-get) install_postgres_apt || true ;;
    dnf) install_postgres_dnf || true ;;
    apk) install postgresql || true ;;
    brew) install postgresql@17 || true ;;
  esac
  postgres_ok && return
  case $pm in
    apt-get)
      name=postgresql
      at_least "${offered:-0}" $want_postgres || name="postgresql-17 (older systems find it in PostgreSQL's own apt repository)"
      ;;
    dnf) name="postgresql-server" ;;
    brew) name="postgresql@17" ;;
    *) name="postgresql (its server part)" ;;
  esac
  die "PostgreSQL $want_postgres or newer is needed: install the package $name and run this again, or name a running one in $1."
}

# --- A C compiler --------------------------------------------------------------------------------------------------

# Compiling tells more than looking: a gcc without the C library's headers is common.
c_ok() {
  printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $(go env CC) -x c -o /dev/null - 2>/dev/null
}

ensure_c() {
  c_ok && return
  case $pm in
    apt-get) apt_update; install gcc libc6-dev || true ;;
    dnf) install gcc glibc-devel || true ;;
    apk) install gcc musl-dev || true ;;
  esac
  hash -r
  c_ok || die "The race detector needs a C compiler: install gcc (on macOS: xcode-select --install) and run this again."
}

# --- Redis ---------------------------------------------------------------------------------------------------------

# Debian's redis-tools has the server program too, under the name redis-check-rdb: the tests find it there.
redis_ok() { have redis-server || have valkey-server || have redis-check-rdb; }

# The tests start a server themselves. Debian's package redis-server would make a service of it that runs at once and
# at every boot; redis-tools brings the same program and no service. The other packages leave their service off.
ensure_redis() {
  redis_ok && return
  case $pm in
    apt-get) apt_update; install redis-tools || true ;;
    dnf) install redis || install valkey || true ;;
    apk | brew) install redis || true ;;
  esac
  hash -r
  [ "$pm" = none ] || redis_ok || say "There is no redis-server, so the tests of locks on Redis will be skipped: install it, or set REDIS_URL."
}

# redis-cli comes with the packages above, but for a machine whose Redis is another one's.
redis_clients_ok() { have redis-cli && "$SETUP_ROOT/usr/bin/python3" -c 'import redis' >/dev/null 2>&1; }

# Wished for, not needed: the tests that use them are skipped and say so.
wish_redis_clients() {
  redis_clients_ok && return
  case $pm in
    apt-get) apt_update; install redis-tools python3-redis || true ;;
    dnf) install redis python3-redis || true ;;
    apk) install redis py3-redis || true ;;
  esac
  hash -r
  [ "$pm" != apt-get ] || redis_clients_ok || say "There is no redis-cli or no redis-py, so the tests that use them will be skipped: install redis-tools and python3-redis."
}

# --- What faults are made with, and the model checker ------------------------------------------------------------------

# wish PACKAGE PROGRAM WHAT: it is wished for, not needed; where it cannot be had, a sentence says what is left out. A
# service that the package brings is not started, neither now nor later: tests start what they need themselves.
wish() {
  wished_ok "$2" && return
  case $pm in
    apt-get)
      apt_update
      before=$(enabled_services)
      install_without_services "$1" || true
      for service in $(enabled_services); do
        case " $before " in *" $service "*) ;; *) as_root systemctl disable --quiet --now "$service" 2>/dev/null || true ;; esac
      done
      ;;
    brew) install "$1" || true ;;
  esac
  hash -r
  wished_ok "$2" || say "There is no $2 here, so $3: install the package $1 for it."
}

# wished_ok PROGRAM: a name in PATH or beside it, or a pattern of files.
wished_ok() {
  case $1 in
    */*) for found in "$SETUP_ROOT"$1; do [ -e "$found" ] && return 0; done; return 1 ;;
    *) have "$1" || [ -x "$SETUP_ROOT/usr/sbin/$1" ] ;;
  esac
}

enabled_services() {
  if have systemctl; then
    systemctl list-unit-files --state=enabled --type=service --no-legend 2>/dev/null | awk '{ printf "%s ", $1 }'
  fi
}

# Debian asks this script before a package starts its service.
policy=$SETUP_ROOT/usr/sbin/policy-rc.d

install_without_services() {
  [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101 # allocator setup\n' | as_root tee "$policy" >/dev/null && as_root chmod 755 "$policy"; }
  status=0
  install "$@" || status=$?
  remove_policy
  return $status
}

remove_policy() {
  if [ -f "$policy" ] && grep -q 'allocator setup' "$policy"; then as_root rm -f "$policy"; fi
}

# Debian has all of it; elsewhere those tests are skipped and say so.
wish_for_faults() {
  [ "$pm" = apt-get ] || return 0
  wish pgbouncer pgbouncer "nothing is tried behind a pooler"
  wish faketime '/usr/lib/*/faketime/libfaketimeMT.so.1' "clocks do not jump"
  wish iproute2 ip "no network is cut"
}

# --- Steps ---------------------------------------------------------------------------------------------------------

pm=$(manager)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; remove_dropin; remove_policy' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

ensure_go
case ${1:-run} in
  run) [ "${ALLOCATOR_DATABASE_URL:-}" ] || ensure_postgres ALLOCATOR_DATABASE_URL ;;
  test | prove)
    ensure_c
    [ "${TEST_DATABASE_URL:-}" ] || ensure_postgres TEST_DATABASE_URL
    [ "${REDIS_URL:-}" ] || ensure_redis
    wish_redis_clients
    wish_for_faults
    if [ "$1" = prove ]; then
      wish spin spin "the model is left out"
      [ "$pm" != apt-get ] || wish etcd-server etcd "Patroni is left out"
      [ "$pm" != apt-get ] || wish patroni patroni "Patroni is left out"
    fi
    ;;
  *) die "usage: tools/setup.sh [run|test|prove]" ;;
esac
