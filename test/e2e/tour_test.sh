#!/usr/bin/env bash
# Runs the first sh block of the tour (tour_test.sh PAGE BIN_DIRECTORY) and looks at what it printed.
set -euo pipefail
page=$1 bin=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
awk '/^```sh$/ && !done {on = 1; next} /^```$/ && on {on = 0; done = 1} on' "$page" |
  sed "s#build/bin/#$bin/#g" >"$scratch/commands"
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache
bash -eu ./commands >out 2>err || { echo "a command of the tour failed:"; cat out err; exit 1; }

expect() {
  grep -qE -- "$1" "$2" || { echo "tour: expected '$1' in:"; cat "$2"; exit 1; }
}
expect '^karst: app.karst: 1 process, 4 threads, 106,27[0-9] calls kept over .*, none overwritten; tracing cost about .*; next: karst slow app.karst$' err
expect ' serve\(int\)  \[app\]  .*/app.cpp:6$' out
expect '^ +([2-9][0-9]|[1-9][0-9]{2,})\.[0-9]+ ms +rest\(int\)' out  # 20 ms, or more on a busy machine
[ -s app.pftrace ] || { echo "tour: no app.pftrace"; exit 1; }
echo "the commands of the tour work"
