// Command prove runs what proves the promises beyond `make test`, each row bounded to a minute, and prints a table of what was
// tried, how often, and what held. It ends with 1 at the first row that does not hold, whose output has the seed.
//
//	go run ./tools/prove               # every row
//	go run ./tools/prove -only model   # the rows whose name contains this
//	go run ./tools/prove -table docs/proof.md   # and puts the table where that of an earlier run stands
//	go run ./tools/prove -soak 1h      # the tests among the rows, again and again
//
// A row is a run of the model checker over docs/model, a test of the repository in a longer form, or a fuzz target for some
// seconds. It changes nothing, unless a fuzz target finds an input that breaks it: that is kept in its testdata.
package main
