#!/bin/sh
# Installs Debian's chromium for the browser tests, once, where root and apt-get are at hand.
# Where it cannot, those tests alone are skipped, and one line says why.
set -u

tried=${1:-.venv/.chromium-tried}
command -v chromium >/dev/null 2>&1 && exit 0
command -v chromium-browser >/dev/null 2>&1 && exit 0
[ -e "$tried" ] && exit 0

skip() {
    echo "The browser tests are skipped: $1."
    exit 0
}

[ "$(uname -s)" = Linux ] || skip "chromium is not installed"
command -v apt-get >/dev/null 2>&1 || skip "chromium is not installed, and there is no apt-get"
[ "$(id -u)" -eq 0 ] || skip "chromium is not installed, and only root may install it"

echo "Installing chromium for the browser tests; this happens once."
touch "$tried"
export DEBIAN_FRONTEND=noninteractive
if ! said=$({ timeout 120 apt-get -q update &&
    timeout 600 apt-get -q install --yes --no-install-recommends chromium; } 2>&1); then
    skip "apt-get could not install chromium ($(echo "$said" | grep . | tail -n 1))"
fi
