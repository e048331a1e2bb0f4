// Command prove runs what proves the promises beyond `make test`, each row bounded to a minute, and prints a table of what was
// tried, how often, and what held. It exits 1 if any row did not hold.
//
//	go run ./tools/prove               # every row
//	go run ./tools/prove -only model   # the rows whose name contains this
//
// A row is a run of the model checker over docs/model, or a test of the repository in a longer form. It changes nothing.
package main
