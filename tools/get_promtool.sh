#!/bin/sh
# Unpacks promtool from Debian's package of Prometheus into a folder, where apt-get is at hand.
# Nothing is installed, so no server starts. Where it cannot, its tests are skipped.
set -u

folder=$1
command -v promtool >/dev/null 2>&1 && exit 0
[ -x "$folder/usr/bin/promtool" ] && exit 0

mkdir -p "$folder"
if ! said=$(cd "$folder" && { timeout 300 apt-get -q download prometheus && dpkg -x prometheus_*.deb .; } 2>&1); then
    echo "The tests with promtool are skipped: it could not be unpacked ($(echo "$said" | grep . | tail -n 1))."
fi
rm -f "$folder"/prometheus_*.deb
