// Package redistest gives tests a real Redis: the one at REDIS_URL, or a server that the test binary starts itself on a
// free port of 127.0.0.1, in a temporary directory and without persistence. Where neither is to be had, the test is
// skipped and says what to do.
//
// A server ends with its test binary, however that ends. The package owns servers of tests; it knows nothing of locks.
package redistest
