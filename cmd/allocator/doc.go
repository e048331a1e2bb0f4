// Command allocator is the whole product in one binary: the service, and the commands with which people and scripts use
// it. It does all the wiring and is the only package that knows all others; it holds no rule of its own beyond what a
// command line needs: settings, words on a terminal, and exit codes.
//
// One file holds one subcommand. What several of them share stands in settings.go (what can be set), execute.go (from
// arguments to exit code), app.go (the services over a database) and serving.go (a running service).
package main
