#!/usr/bin/env bash
# install_test.sh BUILD SOURCE CXX: installs into a temporary DESTDIR, moves the tree, and uses it as a
# stranger would: with find_package, with pkg-config, and from the shell.
set -eu
build=$1 source=$2 cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAIL: $*" >&2
  exit 1
}
has() { [ -s "$1" ] || fail "missing or empty: $1"; }

DESTDIR=$work/dest cmake --install "$build" --prefix /opt/stint >"$work/log" || { cat "$work/log"; exit 1; }
[ -d "$work/dest/opt/stint" ] || fail 'nothing under DESTDIR and the prefix'
[ "$(ls "$work/dest")" = opt ] || fail "outside of the prefix: $(ls "$work/dest")"

# The tree works wherever it stands.
tree=$work/elsewhere/tree
mkdir -p "$work/elsewhere"
mv "$work/dest/opt/stint" "$tree"
lib=$(dirname "$(find "$tree" -name libstint.a)")
for file in bin/stint include/stint/stint.h include/stint/error.h include/stint/lease.h include/stint/outcome.h \
  share/man/man1/stint.1 share/man/man1/stint-run.1 share/bash-completion/completions/stint \
  share/zsh/site-functions/_stint share/fish/vendor_completions.d/stint.fish share/doc/stint/README.md \
  share/doc/stint/examples/hold.cc; do
  has "$tree/$file"
done
for file in libstint.a pkgconfig/stint.pc cmake/stint/stintConfig.cmake cmake/stint/stintConfigVersion.cmake \
  cmake/stint/stintTargets.cmake; do
  has "$lib/$file"
done
for page in "$tree"/share/man/man1/*; do
  has "$page"
  grep -q '^\.TH STINT' "$page" || fail "no manual page: $page"
done
# Nothing of the machine that built it. (The archive's debug information names the source files.)
if grep -rIl -e "$build" -e "$source" "$tree/include" "$lib/cmake" "$lib/pkgconfig"; then
  fail 'names a folder of the build'
fi
# The headers stand on the standard library alone.
if grep -rhE '^#include' "$tree/include" | grep -E 'boost|tl/|"(base|core|api|app|holder|os|\.\.)/'; then
  fail 'a public header includes more than it may'
fi

export XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config
unset STINT_STORE STINT_STORE_FILE STINT_OWNER RUN_ID STINT_HELD STINT_HELD_CLAIMS STINT_RESOURCE STINT_TOKEN
export PATH=$tree/bin:$PATH
stint version | grep -q '^stint ' || fail "stint version: $(stint version)"
bash -n "$tree/share/bash-completion/completions/stint"

# With find_package. One small file: no optimisation.
cmake -S "$tree/share/doc/stint/examples" -B "$work/cmake" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_PREFIX_PATH="$tree" >"$work/log" 2>&1 || { cat "$work/log"; fail 'find_package'; }
cmake --build "$work/cmake" >"$work/log" 2>&1 || { cat "$work/log"; fail 'building with find_package'; }
# With pkg-config, and strictly.
export PKG_CONFIG_PATH=$lib/pkgconfig
# shellcheck disable=SC2046 # words are wanted
"$cxx" -std=c++20 -Wall -Wextra -Wconversion -Wshadow -Werror "$source/examples/hold.cc" -o "$work/hold" \
  $(pkg-config --cflags --libs stint) || fail 'building with pkg-config'

"$work/cmake/hold" blog-repo 2 >"$work/out" || fail "hold: exit $?"
[ "$(cat "$work/out")" = $'step 1 under token 1\nstep 2 under token 1' ] || fail "hold said: $(cat "$work/out")"
# The next one goes on from there, in the same store as the program's.
"$work/hold" blog-repo 3 >"$work/out" || fail "hold: exit $?"
[ "$(cat "$work/out")" = 'step 3 under token 2' ] || fail "hold said: $(cat "$work/out")"
[ "$(stint show blog-repo --json | grep -o '"held":[a-z]*')" = '"held":false' ] || fail 'not released'
# And is waved off by a run.
stint run blog-repo -- "$work/hold" blog-repo 1 2>"$work/err" || fail "hold inside a run: exit $?"
grep -q '^held by ' "$work/err" || fail "hold said: $(cat "$work/err")"
echo ok
