package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// play is a row whose end is known.
type play func(ctx context.Context, long bool) result

func (play) prepare(context.Context) error { return nil }

func (p play) run(ctx context.Context, long bool) result { return p(ctx, long) }

// hangs ends when its time does.
func hangs(ctx context.Context, _ bool) result {
	<-ctx.Done()
	return result{tried: errEnded.Error(), cut: true}
}

// TestProveEndsAtWhatDoesNotHold shows which rows are an error.
func TestProveEndsAtWhatDoesNotHold(t *testing.T) {
	t.Parallel()
	holds := row{"holds", play(func(_ context.Context, long bool) result { return result{held: !long} })}
	fails := row{"fails", play(func(context.Context, bool) result { return result{tried: "once"} })}
	hung := row{"hangs", play(hangs)}
	for sentence, c := range map[string]struct {
		rows        []row
		only, error string
		table       string
	}{
		"all hold":           {rows: []row{holds, holds}},
		"one does not":       {rows: []row{fails, holds}, error: "did not hold: fails", table: "| fails | once | NO |"},
		"one takes for ever": {rows: []row{hung}, error: "did not hold: hangs", table: "| NO |"},
		"only some":          {rows: []row{fails, holds}, only: "hold"},
		"none of that name":  {rows: []row{fails}, only: "hold", error: `no row's name contains "hold"`},
	} {
		p := &prover{rows: c.rows, only: c.only, bound: 10 * time.Millisecond}
		err := p.prove(t.Context())
		require.Contains(t, p.table.String(), c.table, sentence)
		if c.error == "" {
			require.NoError(t, err, sentence)
			continue
		}
		require.EqualError(t, err, c.error, sentence)
	}
}

// TestSoakRunsTheLongFormsUntilItsTimeIsOver shows what is repeated, and that the row under way is cut off and no failure.
func TestSoakRunsTheLongFormsUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	models, runs := 0, 0
	model := row{"model", play(func(context.Context, bool) result { models++; return result{held: true} })}
	repeated := row{"repeated", play(func(ctx context.Context, long bool) result {
		if runs++; runs == 3 {
			return hangs(ctx, long)
		}
		return result{held: long}
	})}
	p := &prover{once: []row{model}, rows: []row{repeated}, bound: time.Hour, until: time.Now().Add(2 * time.Second)}
	require.NoError(t, p.prove(t.Context()))
	require.Equal(t, 1, models)
	require.Equal(t, 3, runs)
	require.Contains(t, p.table.String(), "| repeated | not done in its time | cut off |")

	failing := row{"fails", play(func(ctx context.Context, long bool) result {
		got := hangs(ctx, long)
		got.cut = false // it had failed when its time was over
		return got
	})}
	p = &prover{rows: []row{failing}, bound: time.Hour, until: time.Now().Add(time.Second)}
	require.EqualError(t, p.prove(t.Context()), "did not hold: fails")

	p = &prover{rows: []row{{"hangs", play(hangs)}}, bound: 10 * time.Millisecond, until: time.Now().Add(time.Hour)}
	require.EqualError(t, p.prove(t.Context()), "did not hold: hangs", "beyond its own time, with much left")
}
