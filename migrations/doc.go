// Package migrations owns the database schema and its history: numbered SQL
// files, and River's own tables as one Go migration, applied by goose.
//
// It must not know what the tables mean: no domain types, no queries beyond the
// schema's version.
//
// # Forward only
//
// There are no down migrations. A change that older binaries cannot live with is
// made in two releases: the first expands the schema (new columns are nullable
// or have defaults, old ones stay), the second contracts it when no binary of
// the release before the first is left. Old and new binaries run side by side
// during a rollout, and a rollback of binaries needs no rollback of the schema.
//
// A binary needs every migration it was built with: migrate first, then roll the
// binaries.
//
// # Adding one
//
// Add NNNNN_subject.sql with the next number and a "-- +goose Up" line. A file
// that has been released is never edited.
package migrations
