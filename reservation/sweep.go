package reservation

import (
	"context"
	"errors"
	"fmt"
)

// Swept is what one sweep did.
type Swept struct {
	Expired int
	Failed  int // due reservations that could not be moved, each named in the error
}

// Sweep moves every reservation past its deadline to StateExpired, in batches of at most batch rows. It only tidies:
// nothing waits for it and no switch can turn it off. A row that cannot be moved does not stop the others: a batch that
// fails is taken row by row, and the error names the rows that failed.
func (s *Service) Sweep(ctx context.Context, batch int) (Swept, error) {
	var total Swept
	for {
		n, err := s.store.ExpireDue(ctx, batch)
		total.Expired += n
		switch {
		case ctx.Err() != nil:
			return total, ctx.Err()
		case err != nil:
			return s.sweepOneByOne(ctx, total, batch, err)
		case n < batch:
			return total, nil
		}
	}
}

// sweepOneByOne walks all due reservations once, after a batch failed with cause.
func (s *Service) sweepOneByOne(ctx context.Context, total Swept, batch int, cause error) (Swept, error) {
	var failures []error
	var cursor Due
	for {
		due, err := s.store.DueAfter(ctx, cursor, batch)
		if err != nil {
			return total, errors.Join(cause, err)
		}
		for _, d := range due {
			moved, err := s.store.ExpireOne(ctx, d)
			if err != nil {
				total.Failed++
				failures = append(failures, fmt.Errorf("reservation %s of %s: %w", d.ID, d.Organization, err))
			} else if moved {
				total.Expired++
			}
			cursor = d
		}
		if len(due) < batch || ctx.Err() != nil {
			return total, errors.Join(append(failures, ctx.Err())...)
		}
	}
}
