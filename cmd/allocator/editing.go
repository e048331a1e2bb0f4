package main

import (
	"context"
	"crypto/rand"
	"os/user"
	"regexp"
	"time"

	"allocator/client"
)

// editSeconds is how long a command's lease lasts if the command is killed before it gives it back.
const editSeconds = 60

// giveBackTimeout bounds the good-bye after an interruption.
const giveBackTimeout = 5 * time.Second

// editing runs do under an edit lease on a server, which it takes before and gives back after, whatever came of it. Who is
// at it already is told by the error of taking it.
func editing(ctx context.Context, api *client.ClientWithResponses, serverID string, do func(holder string) error) error {
	resource, holder := "server:"+serverID, editHolder()
	_, err := api.AcquireLeaseWithResponse(ctx, resource, &client.AcquireLeaseParams{LeaseHolder: holder},
		client.LeaseRequest{Seconds: editSeconds, Name: editName()})
	if err != nil {
		return err
	}
	defer func() {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
		defer cancel()
		_, _ = api.ReleaseLeaseWithResponse(back, resource, &client.ReleaseLeaseParams{LeaseHolder: holder}) // it runs out by itself
	}()
	return do(holder)
}

// editHolder names this run, so that two runs of one person exclude each other. In containers each has the process id 1.
func editHolder() string { return "command-line-" + rand.Text() }

var nameless = regexp.MustCompile(`[[:cntrl:]]`)

// editName is how others see who is at work.
func editName() string {
	name := "the command line"
	if who, err := user.Current(); err == nil && who.Username != "" {
		name = who.Username + " at " + name
	}
	return nameless.ReplaceAllString(name, "")
}
