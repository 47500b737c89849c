#!/bin/sh
# make_pages.sh STINT FOLDER: manual pages and completions, as the program itself prints them.
set -eu
stint=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder/man1"
"$stint" help --man >"$folder/man1/stint.1"
# The rows of "Commands:" in the help: two spaces, the name, spaces, the summary.
"$stint" help | awk '/^Commands:/ { on = 1; next } on && /^$/ { exit } on { print $1 }' |
  while read -r command; do
    "$stint" help --man "$command" >"$folder/man1/stint-$command.1"
  done
[ -s "$folder/man1/stint-run.1" ]
"$stint" completion bash >"$folder/stint.bash"
"$stint" completion zsh >"$folder/_stint"
"$stint" completion fish >"$folder/stint.fish"
touch "$folder/made"
