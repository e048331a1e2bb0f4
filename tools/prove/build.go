package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// builtIn is where this process builds the tests, each package once and outside of any row's time.
var builtIn = filepath.Join(os.TempDir(), fmt.Sprintf("allocator-proof-%d", os.Getpid()))

// testsOf builds the tests of a package and says where they are. The race detector is left to `make test`, so that more
// is tried in the same time.
func testsOf(ctx context.Context, pkg string) (string, error) {
	return built(ctx, pkg, ".test", "-tags", "gates")
}

// targetsOf builds them once more, with what a fuzz target needs to see how far an input came.
func targetsOf(ctx context.Context, pkg string) (string, error) {
	return built(ctx, pkg, ".fuzz", "-fuzz", ".")
}

func built(ctx context.Context, pkg, kind string, how ...string) (string, error) {
	binary := filepath.Join(builtIn, strings.ReplaceAll(pkg, "/", "-")+kind)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(builtIn, 0o750); err != nil {
		return "", err
	}
	said, err := command(ctx, ".", nil, "go", append(append([]string{"test", "-c", "-o", binary}, how...), "./"+pkg)...)
	if err == nil && said != "" {
		err = fmt.Errorf("the tests of %s do not compile: %s", pkg, said)
	}
	return binary, err
}
