package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"allocator/client"
)

// patience is how long the demo waits for an abandoned reservation to expire; with a longer hold time it says when
// instead.
const patience = 30 * time.Second

// tale is the story of the demo: what was ordered, and what came of it.
type tale struct {
	p            *process
	api          *client.ClientWithResponses
	run          string // tells the orders of this run from those of others
	shortenHolds func(ctx context.Context) (time.Duration, error)
	chapter      chapter
	number       int

	bought client.Reservation
	rare   client.Requirements // what one server alone can meet
	left   client.Reservation  // the abandoned one
}

// chapter is one part of the story as --json prints it.
type chapter struct {
	Number int      `json:"chapter"`
	Title  string   `json:"title"`
	Lines  []string `json:"lines"`
	Answer any      `json:"answer,omitempty"` // of the last request
}

func newTale(p *process, api *client.ClientWithResponses) *tale {
	return &tale{p: p, api: api, run: "demo-" + strings.ToLower(rand.Text()[:6])}
}

// tell plays every chapter. A server that it sold is given back, also if the story is interrupted.
func (t *tale) tell(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, t.giveBack(context.WithoutCancel(ctx))) }()
	for _, part := range []struct {
		title string
		play  func(ctx context.Context) error
	}{
		{"What is there to sell?", t.lookAround},
		{"A customer orders. The server is held while they pay.", t.order},
		{"Why this one? The answer was frozen when it was chosen.", t.whyThisOne},
		{"Before the payment step the shop renews, so that the deadline cannot come in between.", t.renew},
		{"The payment is authorised. Convert first, capture after: the server changes hands without ever being free.", t.convert},
		{"Another customer reserves a rare server and walks away.", t.abandon},
		{"A third one wants the same, and is told the truth.", t.soldOut},
		{"The deadline passes.", t.comesBack},
		{"What support reads about the third order, now or in a year: `allocator explain " + t.run + "-3`", t.whatSupportReads},
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.begin(part.title)
		if err := part.play(ctx); err != nil {
			return err
		}
		if err := t.end(); err != nil {
			return err
		}
	}
	return nil
}

func (t *tale) begin(title string) {
	t.number++
	t.chapter = chapter{Number: t.number, Title: title, Lines: []string{}}
	if !t.p.json {
		t.p.printf("%d. %s\n", t.number, title)
	}
}

// sayf adds a line to the chapter.
func (t *tale) sayf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	t.chapter.Lines = append(t.chapter.Lines, line)
	if !t.p.json {
		t.p.printf("   %s\n", line)
	}
}

func (t *tale) end() error {
	if t.p.json {
		return t.p.printJSONLine(t.chapter)
	}
	t.p.printf("\n")
	return nil
}

// reserve sends one order; each call has a key of its own unless one is given.
func (t *tale) reserve(ctx context.Context, order, key string, wanted client.Requirements) (client.Reservation, bool, error) {
	if key == "" {
		key = uuid.Must(uuid.NewV7()).String()
	}
	res, err := t.api.CreateReservationWithResponse(ctx, &client.CreateReservationParams{IdempotencyKey: key, Prefer: "wait=5"},
		client.ReservationRequest{OrderID: t.run + order, OrderLine: "1", Requirements: wanted})
	if err != nil {
		return client.Reservation{}, false, err
	}
	r, err := value(res.JSON201, res.JSON200)
	t.chapter.Answer = r
	return r, res.JSON201 != nil, err
}

func (t *tale) evaluate(ctx context.Context, wanted client.Requirements) (client.Evaluation, error) {
	res, err := t.api.EvaluateWithResponse(ctx, client.EvaluationRequest{Requirements: wanted})
	if err != nil {
		return client.Evaluation{}, err
	}
	return value(res.JSON200)
}
