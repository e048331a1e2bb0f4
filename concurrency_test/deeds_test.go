//go:build gates && unix

package concurrency_test

import (
	"context"
	"fmt"
	"os"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// What a deed process reads from its environment.
const (
	deedEnv        = "CONCURRENCY_TEST_DEED"        // what it does, once
	placeEnv       = "CONCURRENCY_TEST_PLACE"       // where it stands still: a gate, or acknowledge
	reservationEnv = "CONCURRENCY_TEST_RESERVATION" // to what, unless it reserves
)

// acknowledge is the place between the answer to COMMIT and the answer to the caller.
const acknowledge = "acknowledge"

// deedProgram does one thing, stands still on the way where the test wants it, and says how it went.
func deedProgram(ctx context.Context, c *child) error {
	var options []allocation.Option
	if os.Getenv(deedEnv) == "walk" {
		options = append(options, allocation.WalkAlways())
	}
	allocator, reservations, err := c.service(ctx, options...)
	if err != nil {
		return err
	}
	set, place := &gate.Set{}, os.Getenv(placeEnv)
	set.Arm(gate.Place(place), func(context.Context) error {
		c.stand(place)
		return nil
	})
	err = deeds[os.Getenv(deedEnv)](gate.With(ctx, set), allocator, reservations, reservation.ID(os.Getenv(reservationEnv)))
	if place == acknowledge {
		c.stand(place)
	}
	c.say("done:", err)
	return nil
}

// deeds are what such a process can do; each is refused by an error.
var deeds = map[string]func(ctx context.Context, a *allocation.Allocator, r *reservation.Service, id reservation.ID) error{
	"reserve": reserveDeed,
	"walk":    reserveDeed,
	"convert": func(ctx context.Context, _ *allocation.Allocator, r *reservation.Service, id reservation.ID) error {
		_, err := r.Convert(ctx, tester, id, "", "service")
		return err
	},
	"renew": func(ctx context.Context, _ *allocation.Allocator, r *reservation.Service, id reservation.ID) error {
		_, err := r.Renew(ctx, tester, id, "")
		return err
	},
	"cancel": func(ctx context.Context, _ *allocation.Allocator, r *reservation.Service, id reservation.ID) error {
		_, err := r.Cancel(ctx, tester, id, "", reservation.Cancellation{Reason: reservation.CancelOther})
		return err
	},
	"sweep": func(ctx context.Context, _ *allocation.Allocator, r *reservation.Service, _ reservation.ID) error {
		_, err := r.Sweep(ctx, batch)
		return err
	},
}

func reserveDeed(ctx context.Context, a *allocation.Allocator, _ *reservation.Service, _ reservation.ID) error {
	outcome, err := a.Reserve(ctx, tester, request("deed"))
	if err == nil && outcome.Refused() {
		err = fmt.Errorf("refused: %s", outcome.Code)
	}
	return err
}

// placesOf are where each deed can stand still inside its transaction, the last of them before its commit.
var placesOf = map[string][]gate.Place{
	"walk":    {gate.ReserveAfterOpen, gate.ReserveAfterList, gate.ReserveAfterLock, gate.ReserveAfterInsert},
	"reserve": {gate.ReserveAfterList, gate.ReserveAfterLock, gate.ReserveAfterInsert},
	"convert": {gate.ChangeAfterServer, gate.ChangeAfterLock, gate.ConvertAfterBinding, gate.ConvertBeforeCommit},
	"renew":   {gate.ChangeAfterLock},
	"cancel":  {gate.ChangeAfterLock},
	"sweep":   {gate.SweepAfterPick},
}
