package main

import (
	"context"
	"strconv"
	"time"

	"allocator/client"
)

// locksCmd takes locks for scripts. It needs a key with the scope operator.
type locksCmd struct {
	Acquire lockAcquireCmd `cmd:"" help:"Take a lock on any text, if nobody has it."`
	Renew   lockRenewCmd   `cmd:"" help:"Keep a lock for a time from now."`
	Release lockReleaseCmd `cmd:"" help:"Give a lock back."`
}

func (*locksCmd) examples() string {
	return `
		allocator locks acquire machine:42:bmc --ttl 2m
		allocator locks renew machine:42:bmc TOKEN --ttl 2m
		allocator locks release machine:42:bmc TOKEN`
}

// lockTime is how long a lock lives.
type lockTime struct {
	TTL time.Duration `name:"ttl" default:"1m" placeholder:"TIME" help:"How long, in whole milliseconds, at most 168h; then it is free unless it was renewed."`
}

func (t lockTime) milliseconds() (int64, error) {
	if t.TTL%time.Millisecond != 0 {
		return 0, usagef("--ttl %v: a lock lives for whole milliseconds", t.TTL)
	}
	return t.TTL.Milliseconds(), nil // how long it may be, the service says
}

type lockAcquireCmd struct {
	clientSettings
	lockTime
	Key string `arg:"" help:"What to lock, such as machine:42:bmc."`
}

// Run implements the command.
func (c *lockAcquireCmd) Run(ctx context.Context, p *process) error {
	ttl, err := c.milliseconds()
	if err != nil {
		return err
	}
	return c.call(func(api *client.ClientWithResponses) error {
		res, err := api.AcquireLockWithResponse(ctx, client.LockRequest{Key: c.Key, TTLMs: ttl})
		if err != nil {
			return err
		}
		lock, err := value(res.JSON201)
		return p.showLock(lock, err)
	})
}

type lockRenewCmd struct {
	clientSettings
	lockTime
	Key   string `arg:"" help:"What is locked."`
	Token string `arg:"" help:"The token that acquire printed."`
}

// Run implements the command.
func (c *lockRenewCmd) Run(ctx context.Context, p *process) error {
	ttl, err := c.milliseconds()
	if err != nil {
		return err
	}
	return c.call(func(api *client.ClientWithResponses) error {
		res, err := api.RenewLockWithResponse(ctx, client.LockRenewal{Key: c.Key, Token: c.Token, TTLMs: ttl})
		if err != nil {
			return err
		}
		lock, err := value(res.JSON200)
		return p.showLock(lock, err)
	})
}

type lockReleaseCmd struct {
	clientSettings
	Key   string `arg:"" help:"What is locked."`
	Token string `arg:"" help:"The token that acquire printed."`
}

// Run implements the command.
func (c *lockReleaseCmd) Run(ctx context.Context, p *process) error {
	return c.call(func(api *client.ClientWithResponses) error {
		_, err := api.ReleaseLockWithResponse(ctx, &client.ReleaseLockParams{Key: c.Key, LockToken: c.Token})
		return p.done(map[string]string{"key": c.Key}, err, "%s is free.\n", c.Key)
	})
}

func (p *process) showLock(lock client.Lock, err error) error {
	switch {
	case err != nil:
		return err
	case p.json:
		return p.printJSON(lock)
	}
	p.notef("%s", lock.Text)
	t := p.table("lock", lock.Key)
	t.row("token", lock.Token)
	t.row("fence", strconv.FormatInt(lock.Fence, 10))
	t.row("until", instant(lock.ExpiresAt))
	return t.flush()
}
