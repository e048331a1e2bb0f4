package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"allocator/client"
)

// The first half of the demo's story: an order that ends well.

// lookAround counts what could be sold now.
func (t *tale) lookAround(ctx context.Context) error {
	e, err := t.evaluate(ctx, client.Requirements{})
	if err != nil {
		return err
	}
	if e.Eligible == 0 {
		return errors.New("there is no free server to play with: add some, or run `allocator demo` without ALLOCATOR_API_KEY to play on a service of its own")
	}
	if len(e.Ranked) == 0 {
		return &forbidden{"the key may not see which servers there are: use one with the scopes checkout, orders and support"}
	}
	t.chapter.Answer = map[string]any{"servers": e.Servers, "eligible": e.Eligible}
	t.sayf("%s, %d of them free and ready.", plural(e.Servers, "server"), e.Eligible)
	middle := e.Ranked[len(e.Ranked)/2].Server
	t.bought.Server = middle // a first idea of what the customer wants
	return nil
}

// order reserves a server like the one in the middle of the list, twice with the same key.
func (t *tale) order(ctx context.Context) error {
	wanted := like(t.bought.Server)
	t.sayf("Order %s asks for: %s.", t.run+"-1", strings.Join(wantedWords(wanted), "; "))
	key := t.run + "-1-key"
	first, _, err := t.reserve(ctx, "-1", key, wanted)
	if err != nil {
		return err
	}
	t.bought = first
	t.sayf("Held: %s (%s).", serverName(first.Server), hardware(first.Server))
	t.sayf("Until %s, %s from now.", instant(first.ExpiresAt), span(first.ExpiresAt.Sub(first.CreatedAt)))
	again, made, err := t.reserve(ctx, "-1", key, wanted)
	if err != nil {
		return err
	}
	if made || again.ID != first.ID {
		return fmt.Errorf("the same key gave another reservation, %s after %s: this must never happen", again.ID, first.ID)
	}
	t.sayf("The answer was lost? The same key again gives the same reservation, never a second server.")
	return nil
}

// whyThisOne reads the frozen decision.
func (t *tale) whyThisOne(ctx context.Context) error {
	res, err := t.api.GetDecisionWithResponse(ctx, t.bought.DecisionID)
	if err != nil {
		return err
	}
	d, err := value(res.JSON200)
	if err != nil {
		return err
	}
	t.chapter.Answer = d
	t.sayf("%s", d.Text)
	for _, c := range d.Counts[:min(4, len(d.Counts))] {
		t.sayf("%4d left out: %s", c.Servers, c.Text)
	}
	return nil
}

func (t *tale) renew(ctx context.Context) error {
	res, err := t.api.RenewReservationWithResponse(ctx, t.bought.ID, &client.RenewReservationParams{HoldToken: token(t.bought)})
	if err != nil {
		return err
	}
	r, err := value(res.JSON200)
	t.chapter.Answer = r
	t.sayf("Held until %s now; no renewal goes beyond %s.", instant(r.ExpiresAt), instant(r.MaxExpiresAt))
	return err
}

// convert sells the server, and shows that doing it again does no harm.
func (t *tale) convert(ctx context.Context) error {
	for range 2 {
		res, err := t.api.ConvertReservationWithResponse(ctx, t.bought.ID, &client.ConvertReservationParams{HoldToken: token(t.bought)},
			client.ConvertRequest{ServiceID: t.run + "-service"})
		if err != nil {
			return err
		}
		b, err := value(res.JSON201, res.JSON200)
		if err != nil {
			return err
		}
		t.chapter.Answer, t.bought.BindingID = b, b.ID
		if res.JSON201 != nil {
			t.sayf("%s belongs to service %s now (%s).", serverName(b.Server), b.ServiceID, b.ID)
		} else {
			t.sayf("Converted once more, as after a lost answer: the same binding.")
		}
	}
	return nil
}

// like asks for a server of at least this one's kind, in the words of a shop.
func like(s client.ReservedServer) client.Requirements {
	wanted := client.Requirements{Sites: []string{s.Site}, Memory: client.MemoryRequirements{MibMin: s.Memory.Mib}}
	if s.Price.Amount != "" {
		wanted.Price = client.PriceLimit{Currency: s.Price.Currency, MonthlyMax: s.Price.Amount}
	}
	return wanted
}

func token(r client.Reservation) string {
	if r.HoldToken == nil {
		return ""
	}
	return *r.HoldToken
}
