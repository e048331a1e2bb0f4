package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"allocator/client"
)

// The second half of the demo's story: a server that two customers want.

// abandon reserves the only server of its kind and does nothing more.
func (t *tale) abandon(ctx context.Context) error {
	if t.shortenHolds != nil {
		hold, err := t.shortenHolds(ctx)
		if err != nil {
			return err
		}
		t.sayf("(From here on the hold time is %s, so that nobody has to wait for 15 minutes.)", span(hold))
	}
	var err error
	if t.rare, err = t.findRare(ctx); err != nil {
		return err
	}
	if t.left, _, err = t.reserve(ctx, "-2", "", t.rare); err != nil {
		return err
	}
	t.sayf("Order %s asks for: %s.", t.run+"-2", strings.Join(wantedWords(t.rare), "; "))
	t.sayf("Held: %s (%s), until %s.", serverName(t.left.Server), hardware(t.left.Server), instant(t.left.ExpiresAt))
	return nil
}

// findRare describes a server, from the largest on, so that no other one fits.
func (t *tale) findRare(ctx context.Context) (client.Requirements, error) {
	e, err := t.evaluate(ctx, client.Requirements{})
	if err != nil {
		return client.Requirements{}, err
	}
	var wanted client.Requirements
	for i := len(e.Ranked) - 1; i >= max(0, len(e.Ranked)-10); i-- {
		server := e.Ranked[i].Server
		wanted = like(server)
		for _, d := range server.Drives[:min(8, len(server.Drives))] {
			wanted.Drives = append(wanted.Drives, client.DriveRequirement{
				CountMin: d.Count, NominalGbMin: d.NominalGb, Medium: client.DriveRequirementMedium(d.Medium),
			})
		}
		found, err := t.evaluate(ctx, wanted)
		if err != nil || found.Eligible == 1 {
			return wanted, err
		}
		wanted.Servers = []client.ServerID{server.ID}
	}
	if wanted.Servers == nil {
		return wanted, errors.New("there is no second free server to play with")
	}
	return wanted, nil // a whole fleet of equals: then the customer insists on this one
}

// soldOut asks for the same and must be refused.
func (t *tale) soldOut(ctx context.Context) error {
	_, _, err := t.reserve(ctx, "-3", "", t.rare)
	var refused *client.Error
	switch {
	case err == nil:
		return errors.New("the third order got a server although the only one that fits is held: was it released meanwhile? Play again")
	case !errors.As(err, &refused) || refused.Code != client.ProblemCodeNoCapacity:
		return err
	}
	t.chapter.Answer = refused.Problem
	t.sayf("Refused, %s (%s): %s", refused.Code, refused.Cause, refused.Detail)
	if refused.Nearest.Requirement != "" {
		t.sayf("So the shop can offer something at once: %s fit if %s were relaxed.", plural(refused.Nearest.Servers, "server"), refused.Nearest.Requirement)
	}
	return nil
}

// comesBack waits until the abandoned reservation has expired and lets the third customer have the server, or says when
// that will be.
func (t *tale) comesBack(ctx context.Context) error {
	if hold := t.left.ExpiresAt.Sub(t.left.CreatedAt); hold > patience {
		t.sayf("That is not awaited here: the hold time of this organization is %s.", span(hold))
		t.sayf("%s comes back at %s by itself, swept or not.", serverName(t.left.Server), instant(t.left.ExpiresAt))
		return nil
	}
	if err := t.awaitExpiry(ctx); err != nil {
		return err
	}
	t.sayf("Nobody paid, so nothing holds the server any more; no sweep had to come by for that.")
	r, _, err := t.reserve(ctx, "-3", "", t.rare)
	if err != nil {
		return err
	}
	t.sayf("The third customer tries again: %s is theirs until %s.", serverName(r.Server), instant(r.ExpiresAt))
	return t.payTooLate(ctx)
}

// awaitExpiry asks until the service says expired: its clock decides, not ours.
func (t *tale) awaitExpiry(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	for {
		res, err := t.api.GetReservationWithResponse(ctx, t.left.ID)
		if err != nil {
			return err
		}
		r, err := value(res.JSON200)
		if err != nil || r.State == client.ReservationStateExpired {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("reservation %s did not expire in time: %w", t.left.ID, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// payTooLate shows that a late payment binds nothing in silence.
func (t *tale) payTooLate(ctx context.Context) error {
	_, err := t.api.ConvertReservationWithResponse(ctx, t.left.ID, &client.ConvertReservationParams{HoldToken: token(t.left)},
		client.ConvertRequest{ServiceID: t.run + "-late"})
	if client.CodeOf(err) != client.ProblemCodeReservationExpired {
		return errors.Join(errors.New("a conversion after the deadline was not refused as such"), err)
	}
	t.sayf("The second customer pays after all: refused (%s). Nothing is bound in silence, and support gets to know.", client.CodeOf(err))
	return nil
}
