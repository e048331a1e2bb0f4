package main

import (
	"context"
	"strings"
	"time"

	"allocator/client"
)

// keysCmd keeps the API keys of an organization. It needs the database or a key with the scope admin.
type keysCmd struct {
	List   keysListCmd   `cmd:"" help:"List an organization's keys, oldest first; secrets are never shown again."`
	Create keysCreateCmd `cmd:"" help:"Make a key. Its secret is printed this once."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key for ever, everywhere within 5 seconds."`
}

func (*keysCmd) examples() string {
	return `
		allocator keys create "web shop" --scope checkout --org acme
		allocator keys create "order completion" --scope orders --expires-in 2160h
		allocator keys revoke key_0190a1b2c3d47e5f8091a2b3c4d5e6f7`
}

// keyOwner says whose keys are meant.
type keyOwner struct {
	adminSettings
	Org string `name:"org" placeholder:"ORG" help:"The organization; needed with --database-url, else the API key's own."`
}

// administer asks for the organization where nothing else tells it.
func (o *keyOwner) administer(ctx context.Context, do func(a administration) error) error {
	switch {
	case o.DatabaseURL != "" && o.Org == "":
		return usagef("whose keys? Give the organization with --org")
	case o.DatabaseURL == "" && o.Org != "":
		return usagef("over HTTP the API key decides the organization: leave --org out, or give --database-url")
	}
	return o.adminSettings.administer(ctx, o.Org, do)
}

type keysListCmd struct{ keyOwner }

// Run implements the command.
func (c *keysListCmd) Run(ctx context.Context, p *process) error {
	return c.administer(ctx, func(a administration) error {
		list, err := a.Keys(ctx)
		if err != nil {
			return err
		}
		if p.json {
			return p.printJSON(map[string]any{"items": list})
		}
		t := p.table("ID", "NAME", "SCOPES", "CREATED", "LAST USED", "EXPIRES", "REVOKED")
		for _, k := range list {
			t.row(k.ID, k.Name, scopeNames(k.Scopes), day(k.CreatedAt), instant(k.LastUsedAt), instant(k.ExpiresAt), instant(k.RevokedAt))
		}
		return t.flush()
	})
}

type keysCreateCmd struct {
	keyOwner
	Name      string        `arg:"" help:"What it is for."`
	Scopes    []string      `name:"scope" required:"true" placeholder:"SCOPE" help:"What it may do: checkout, orders, support, operator, admin, platform. Repeat it or separate by commas."`
	ExpiresIn time.Duration `name:"expires-in" placeholder:"TIME" help:"How long it is valid; for ever if left out."`
}

// Run implements the command.
func (c *keysCreateCmd) Run(ctx context.Context, p *process) error {
	wanted := client.NewKey{Name: c.Name}
	for _, scope := range c.Scopes {
		wanted.Scopes = append(wanted.Scopes, client.Scope(scope))
	}
	if c.ExpiresIn != 0 {
		wanted.ExpiresAt = time.Now().Add(c.ExpiresIn).UTC()
	}
	return c.administer(ctx, func(a administration) error {
		key, err := a.CreateKey(ctx, wanted)
		switch {
		case err != nil:
			return err
		case p.json:
			return p.printJSON(key)
		}
		p.notef("Key %s (%s) may do: %s. Keep the text below; nobody can read it again.", key.ID, key.Name, scopeNames(key.Scopes))
		p.printf("%s\n", key.Key)
		return nil
	})
}

type keysRevokeCmd struct {
	keyOwner
	ID string `arg:"" help:"The key's id, key_…"`
}

// Run implements the command.
func (c *keysRevokeCmd) Run(ctx context.Context, p *process) error {
	return c.administer(ctx, func(a administration) error {
		key, err := a.RevokeKey(ctx, c.ID)
		switch {
		case err != nil:
			return err
		case p.json:
			return p.printJSON(key)
		}
		p.printf("Key %s (%s) is revoked since %s.\n", key.ID, key.Name, instant(key.RevokedAt))
		return nil
	})
}

func scopeNames(scopes []client.Scope) string {
	return strings.Join(mapped(scopes, func(s client.Scope) string { return string(s) }), ",")
}
