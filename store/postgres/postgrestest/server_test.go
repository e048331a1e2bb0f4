package postgrestest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSourcesAreTriedInOrder(t *testing.T) {
	t.Parallel()
	address := mustServer(t).adminURL
	works := func(context.Context) (string, error) { return address, nil }
	fails := func(context.Context) (string, error) { return "", errors.New("not here") }
	never := func(context.Context) (string, error) {
		t.Error("a later source was tried")
		return "", errors.New("never")
	}

	found, err := findServer(t.Context(), address, never)
	require.NoError(t, err)
	require.Equal(t, address, found.adminURL)

	found, err = findServer(t.Context(), "", fails, works, never)
	require.NoError(t, err)
	require.Equal(t, address, found.adminURL)
}

func TestWithoutAServerTheReasonIsASentence(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		given   string
		sources []source
		says    string
	}{
		"no source works": {
			"", []source{
				func(context.Context) (string, error) { return "", errors.New("no container engine") },
				func(context.Context) (string, error) { return "", errors.New("no binaries") },
			}, "set TEST_DATABASE_URL, start a container engine, or install the server's binaries: no container engine\nno binaries",
		},
		"the given server does not answer": {
			"postgres://nobody@127.0.0.1:1/postgres", nil, "the one at TEST_DATABASE_URL does not answer",
		},
		"the given server is not given as a URL": {
			"host=127.0.0.1 user=postgres", nil, "TEST_DATABASE_URL must be a URL",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			_, err := findServer(t.Context(), c.given, c.sources...)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestProbeWithoutAnEngineIsAnError(t *testing.T) {
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
	t.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "")
	err := probeEngine(t.Context())
	if err == nil {
		t.Skip("the library found a container engine elsewhere")
	}
	require.ErrorContains(t, err, "no container engine")
}
