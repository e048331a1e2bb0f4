package lease

import (
	"context"
	"time"
)

// claim is one claim on one resource, inside its transaction and alone among the claims on it.
type claim struct {
	tx      Tx
	policy  Policy
	ceiling time.Duration
	writer  Writer
	key     Key
	seen    Standing
	granted Lease
}

func (c *claim) acquire(ctx context.Context, seconds int64) error {
	if l := c.seen.blocking(c.writer.Holder, c.key); l != nil {
		return &HeldError{Lease: l, Now: c.seen.Now}
	}
	return c.grant(ctx, seconds)
}

func (c *claim) heartbeat(ctx context.Context, seconds int64) error {
	mine := c.seen.at(c.key)
	taken := c.seen.blocking(c.writer.Holder, c.key)
	if mine == nil || !mine.Holder.Is(c.writer.Holder) || taken != nil {
		return &LostError{Key: c.key, By: taken, Now: c.seen.Now}
	}
	return c.write(ctx, mine, mine.AcquiredAt, seconds)
}

func (c *claim) takeOver(ctx context.Context, seconds int64, reason string) (TakeOver, error) {
	t := TakeOver{Reason: reason}
	for _, l := range c.seen.Active() {
		if l.Holder.Is(c.writer.Holder) || !l.Key.Overlaps(c.key) {
			continue
		}
		if !c.policy.MayTakeOver(c.writer, l) {
			return t, ErrEditRefused
		}
		t.Removed = append(t.Removed, l)
	}
	if err := c.grant(ctx, seconds); err != nil {
		return t, err
	}
	t.Granted = Granted{Lease: c.granted, Now: c.seen.Now}
	if len(t.Removed) == 0 {
		return t, nil
	}
	return t, c.tx.TookOver(ctx, c.writer, t)
}

// grant gives the key to the writer. Whatever others have of it goes: what is active was asked for by the caller, and what
// has run out must not be kept by a heartbeat once somebody else had the key.
func (c *claim) grant(ctx context.Context, seconds int64) error {
	for _, l := range c.seen.Leases {
		if l.Holder.Is(c.writer.Holder) || !l.Key.Overlaps(c.key) || l.Key == c.key {
			continue
		}
		if gone, err := c.tx.Remove(ctx, l); err != nil || !gone {
			return orLost(err)
		}
	}
	row := c.seen.at(c.key)
	if row != nil && row.Holder.Is(c.writer.Holder) && row.ActiveAt(c.seen.Now) {
		return c.write(ctx, row, row.AcquiredAt, seconds) // renewed
	}
	return c.write(ctx, row, c.seen.Now.UTC().Truncate(time.Second), seconds)
}

// write stores the writer's lease in place of row, or as a new one if there is none.
func (c *claim) write(ctx context.Context, row *Lease, acquired time.Time, seconds int64) error {
	if c.ceiling > 0 && c.seen.Now.Sub(acquired) >= c.ceiling {
		return ErrCeiling
	}
	c.granted = Lease{
		Key: c.key, Holder: c.named(row), Credential: c.writer.Credential,
		AcquiredAt: acquired, ExpiresAt: until(c.seen.Now, seconds), Version: 1,
	}
	store := c.tx.Insert
	if row != nil {
		c.granted.Version, store = row.Version, c.tx.Replace
	}
	stored, err := store(ctx, c.granted)
	if err != nil || !stored {
		return orLost(err)
	}
	if row != nil {
		c.granted.Version++
	}
	return nil
}

// named is the writer by the name that it gives, or gave before.
func (c *claim) named(row *Lease) Holder {
	holder := c.writer.Holder
	switch {
	case holder.Name != "":
	case row != nil && row.Holder.Is(holder):
		holder.Name = row.Holder.Name
	default:
		holder.Name = holder.ID
	}
	return holder
}

// orLost is a failure, or else a race that was lost.
func orLost(err error) error {
	if err != nil {
		return err
	}
	return ErrLostRace
}
