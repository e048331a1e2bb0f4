// Package importer turns other people's lists of machines into servers, and carries a small real one for a first look.
//
// It owns the reading of formats and the judgement of what a text in them says. What cannot be told from a row stays
// unknown, and a row that says the same thing in two different ways is an error, never a guess. It stores nothing, and
// it never takes a machine to be ready by itself: where a format has no state, the caller gives one.
package importer
