// Command mutants takes out, one at a time, each line that keeps a promise, and sees its test go red. A test that stays
// green without the line proves nothing, nor does one that is red with it, and then this command fails.
//
//	go run ./tools/mutants            # all of them, in a copy of HEAD
//	go run ./tools/mutants -only NAME
//	go run ./tools/mutants -table     # the table of docs/proof.md, runs nothing
//
// It works on a temporary worktree of HEAD and changes nothing in yours.
package main
