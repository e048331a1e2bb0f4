// Command prove runs what proves the promises beyond `make test`, each row bounded to a minute, and prints a table of what was
// tried, how often, and what held. It ends with 1 at the first row that does not hold, whose output has the seed.
//
//	go run ./tools/prove               # every row
//	go run ./tools/prove -only model   # the rows whose name contains this
//	go run ./tools/prove -table docs/proof.md   # and puts the table where that of an earlier run stands
//	go run ./tools/prove -soak 1h      # the long forms, for an hour
//
// A row is a run of the model checker over docs/model, some tests of the repository, many in a longer form than `make test`
// has, or a fuzz target for some seconds. Tests are built before their rows' time begins. A test that was not there or did
// not run does not hold; one that says it cannot run here is skipped.
//
// A soak runs the model once and everything else again and again, in another order each time: tests in their long forms,
// each fuzz target for minutes, and none for more than half an hour. When its time is over the row under way is cut off,
// which is no failure unless something had failed by then.
//
// It changes nothing, unless a fuzz target finds an input that breaks it: that is kept in its testdata.
package main
