#!/bin/sh
# Fails if a generated file, go.mod or go.sum is not what the sources say. Compares the tree before and after, not
# with the last commit, so that it may run on uncommitted work. What it wrote anew stays, ready to be committed.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Files that git knows or would know; one deleted in the tree but not in the index has no sum and is left out.
sums() { git ls-files -z --cached --others --exclude-standard | xargs -0 cksum 2>/dev/null | sort -k3 || true; }

sums >"$scratch/before"
go generate ./...
sums >"$scratch/after"
if ! diff "$scratch/before" "$scratch/after" >"$scratch/diff"; then
  echo "Not current: the files below differ from what 'make generate' writes. It has just written them: commit them." >&2
  sed -n 's/^[<>] [0-9]* [0-9]* /  /p' "$scratch/diff" | sort -u >&2
  exit 1
fi
if ! go mod tidy -diff >"$scratch/tidy" 2>"$scratch/tidy.err"; then
  echo "go.mod or go.sum is not what 'go mod tidy' would write:" >&2
  cat "$scratch/tidy.err" >&2
  grep '^[-+]' "$scratch/tidy" | head -n 20 >&2
  exit 1
fi
