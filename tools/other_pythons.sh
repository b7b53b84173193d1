#!/bin/sh
# Runs `make test` on each supported Python but the given one, in an environment of its own.
# One that is not on this machine is skipped with a line.
set -eu

python=$1
arguments=${2:-}
uv=$(dirname "$python")/uv
current=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

find_python() {
    for candidate in "python$1" "$HOME/.pyenv/versions/$1".*/bin/python "$("$uv" python find "$1" 2>/dev/null)"; do
        # A name on PATH may be a stub that cannot run.
        if "$candidate" -c "import ensurepip, venv" >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
}

for version in 3.11 3.12 3.13; do
    [ "$version" = "$current" ] && continue
    found=$(find_python "$version")
    if [ -z "$found" ]; then
        echo "Python $version is not on this machine: its tests are skipped."
        continue
    fi
    echo "Python $version:"
    # With its own pip an environment takes two minutes to fill, with uv half of one.
    ${MAKE:-make} --no-print-directory test VENV=".venv-$version" CANDIDATES="$found" ARGS="$arguments" \
        PIP="$uv pip --quiet" UV_PYTHON=".venv-$version/bin/python"
done
