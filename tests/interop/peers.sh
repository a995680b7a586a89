#!/usr/bin/env bash
# The Python side of the interoperability tests: torch, transformers and compressed-tensors as Debian packages a newer
# release, in a root folder of their own (.peers/), so that the system stays as it is.
#   tests/interop/peers.sh create        make or renew the folder: about 250 MB to fetch, a few minutes; needs root
#   tests/interop/peers.sh run CMD...    run inside; the checkout and /tmp are seen under the same paths
# Mounts live in a private namespace: they end with the command, so the folder can be deleted at any time.
# Exit code 3: cannot be made here (no root, or no apt-get).
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
root=$checkout/.peers
suite=forky
packages="python3-torch python3-transformers python3-compressed-tensors python3-safetensors"
stamp=$root/.ready

say() { echo "set-up: $*" >&2; }

inside() {
  unshare --mount --propagation private bash -c '
    root=$1 checkout=$2 here=$3; shift 3
    mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"
    for folder in "$checkout" /tmp; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done
    exec chroot "$root" /usr/bin/env -C "$here" HOME=/root LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 "$@"
  ' -- "$root" "$checkout" "$@"
}

create() {
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$suite $packages" ] && return
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "the Python peers need root and apt-get (Debian); run this as root to have them in .peers/"
    exit 3
  fi
  if ! command -v debootstrap >/dev/null; then
    say "installing debootstrap"
    apt-get -qq update >&2 || true
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends debootstrap >&2
  fi
  say "making .peers/ from Debian $suite ($packages), about 250 MB to fetch"
  rm -rf "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$suite" "$root" \
    http://deb.debian.org/debian /usr/share/debootstrap/scripts/sid >"$root/debootstrap.log" 2>&1 ||
    { tail -20 "$root/debootstrap.log" >&2; say "debootstrap failed"; exit 1; }
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # shellcheck disable=SC2086
  inside / env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root install -y \
    --no-install-recommends $packages >"$root/install.log" 2>&1 ||
    { tail -20 "$root/install.log" >&2; say "installing the Python peers failed"; exit 1; }
  inside / apt-get clean
  echo "$suite $packages" >"$stamp"
}

case ${1:-} in
create) create ;;
run)
  shift
  [ -f "$stamp" ] || { say "no .peers/ yet: run tests/interop/peers.sh create"; exit 3; }
  inside "$(pwd)" "$@"
  ;;
*)
  echo "usage: tests/interop/peers.sh create | run COMMAND..." >&2
  exit 2
  ;;
esac
