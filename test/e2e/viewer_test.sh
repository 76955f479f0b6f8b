#!/usr/bin/env bash
# viewer_test.sh types|unit|core|page: one part of the viewer's tests; ends with 77 and the reason when it cannot run.
#   core   some of what page has
#   page   builds viewer_workload.cc and viewer_switching.cc with karst-g++, traces them, makes a trace of five million
#          calls, and drives their pages in Debian's Chromium
set -euo pipefail
skip() {
  echo "skipped: $*"
  exit 77
}
cd "$KARST_SOURCE_ROOT/page"
export KARST_ENGINE=$KARST_BIN/../page-engine.wasm
command -v node >/dev/null || skip "there is no node; script/setup installs it"
[ -d node_modules/vitest ] || skip "page/node_modules is missing; script/setup fetches it"
case $1 in
  types) exec node node_modules/typescript/bin/tsc --noEmit -p tsconfig.json ;;
  unit) exec node node_modules/vitest/vitest.mjs run ;;
  core | page)
    KARST_CHROMIUM=$(command -v chromium) || skip "there is no chromium; script/setup installs it"
    work=$KARST_E2E_WORK/viewer-$1
    mkdir -p "$work"
    "$KARST_BIN/karst-g++" -std=c++17 -O1 -g -pthread "$KARST_SOURCE_ROOT/test/e2e/viewer_workload.cc" -o "$work/shop"
    "$KARST_BIN/karst" run -o "$work/shop.karst" "$work/shop"
    "$KARST_BIN/karst-g++" -std=c++17 -O1 -g -I"$KARST_SOURCE_ROOT/include" "$KARST_SOURCE_ROOT/test/e2e/viewer_switching.cc" -o "$work/switching"
    "$KARST_BIN/karst" run -o "$work/switching.karst" --over 'shop::serve:10ms' --slowest 'shop::serve:3' "$work/switching"
    KARST_FIREFOX=$(command -v firefox-esr || true)
    export KARST_CHROMIUM KARST_FIREFOX KARST_VIEWER_WORK=$work XDG_CACHE_HOME=$work/cache
    files=(test/page/page.test.ts test/page/opening.test.ts test/page/recorded.test.ts test/page/samples.test.ts)
    if [ "$1" = page ]; then
      files=()
      "$KARST_BIN/karst-trace-bench" make "$work/large.karst" 10000000 64 fib
      trap 'rm -f "$work/large.karst"' EXIT # 80 MB
    fi
    node node_modules/vitest/vitest.mjs run --config vitest.page.config.ts "${files[@]}"
    ;;
  *) exit 2 ;;
esac
