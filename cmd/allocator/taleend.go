package main

import (
	"context"

	"allocator/client"
)

// The end of the demo's story.

// whatSupportReads tells the story of the third order as `allocator explain` does.
func (t *tale) whatSupportReads(ctx context.Context) error {
	res, err := t.api.GetOrderWithResponse(ctx, t.run+"-3")
	if err != nil {
		return err
	}
	order, err := value(res.JSON200)
	t.chapter.Answer = order
	if err == nil && !t.p.json {
		t.p.tellOrder(order)
	}
	return err
}

// giveBack ends what the story sold, and marks the server ready again if the key may.
func (t *tale) giveBack(ctx context.Context) error {
	if t.bought.BindingID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t.begin("The service ends; an operator cleans the server and marks it ready.")
	if _, err := t.api.EndBindingWithResponse(ctx, t.bought.BindingID, client.EndBindingRequest{Reason: "the demo is over"}); err != nil {
		return err
	}
	t.sayf("The binding has ended: the server goes to cleaning, and is offered to nobody.")
	ready, err := setState(ctx, t.api, t.bought.Server.ID,
		client.ServerStateRequest{State: client.ServerStateReady, Reason: "the demo is over"})
	switch {
	case client.CodeOf(err) == client.ProblemCodeMissingScope:
		t.sayf("This key may not mark it ready; an operator has to: %s.", t.bought.Server.ID)
	case err != nil:
		return err
	default:
		t.chapter.Answer = ready
		t.sayf("%s is free for the next order.", serverName(t.bought.Server))
	}
	return t.end()
}
