package migrations

// For tests in migrations_test, which cannot be in this package because the
// databases they need are made by one that imports it.
var (
	UpWithLockTimeout = up
	ContentHashOf     = contentHash
)
