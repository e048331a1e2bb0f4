package main

import (
	"context"
	"strconv"
)

// flagsCmd turns the release switches. It needs the database or a key: admin for the own organization's value, platform
// for everything.
type flagsCmd struct {
	List  flagsListCmd  `cmd:"" help:"List the release switches and their overrides."`
	Set   flagsSetCmd   `cmd:"" help:"Turn a switch: on, off, or on for a percentage of all organizations."`
	Unset flagsUnsetCmd `cmd:"" help:"Let the global value hold for an organization again."`
}

func (*flagsCmd) examples() string {
	return `
		allocator flags set reservations on --org acme
		allocator flags set reservations 50
		allocator flags unset reservations --org acme`
}

type flagsListCmd struct{ adminSettings }

// Run implements the command.
func (c *flagsListCmd) Run(ctx context.Context, p *process) error {
	return c.administer(ctx, "", func(a administration) error {
		list, err := a.Flags(ctx)
		if err != nil {
			return err
		}
		if p.json {
			return p.printJSON(map[string]any{"items": list})
		}
		t := p.table("SWITCH", "FOR", "VALUE", "CHANGED", "BY")
		for _, f := range list {
			t.row(f.Key, "everybody", strconv.Itoa(f.Percent)+" %", instant(f.ChangedAt), actor(f.ChangedBy))
			for _, o := range f.Overrides {
				t.row(f.Key, o.OrganizationID, onOff(o.Enabled), instant(o.ChangedAt), actor(o.ChangedBy))
			}
		}
		return t.flush()
	})
}

type flagsSetCmd struct {
	adminSettings
	Key   string `arg:"" help:"The switch, such as reservations."`
	Value string `arg:"" help:"on, off, or a percentage from 0 to 100 without --org."`
	Org   string `name:"org" placeholder:"ORG" help:"Only for this organization; wins over the global value."`
}

// Run implements the command.
func (c *flagsSetCmd) Run(ctx context.Context, p *process) error {
	percent, err := c.percent()
	if err != nil {
		return err
	}
	return c.administer(ctx, c.Org, func(a administration) error {
		if c.Org != "" {
			override, err := a.SetOverride(ctx, c.Key, c.Org, percent == 100)
			return p.done(override, err, "Switch %s is %s for %s; every replica sees it within 10 seconds.\n", c.Key, onOff(override.Enabled), c.Org)
		}
		flag, err := a.SetFlag(ctx, c.Key, percent)
		return p.done(flag, err, "Switch %s is on for %d %% of all organizations; every replica sees it within 10 seconds.\n", c.Key, flag.Percent)
	})
}

// percent reads the value; on is everybody, off nobody.
func (c *flagsSetCmd) percent() (int, error) {
	switch c.Value {
	case "on":
		return 100, nil
	case "off":
		return 0, nil
	}
	if c.Org != "" {
		return 0, usagef("the value of one organization is on or off, not %q", c.Value)
	}
	percent, err := strconv.Atoi(c.Value)
	if err != nil {
		return 0, usagef("the value of a switch is on, off, or a percentage from 0 to 100, not %q", c.Value)
	}
	return percent, nil
}

type flagsUnsetCmd struct {
	adminSettings
	Key string `arg:"" help:"The switch, such as reservations."`
	Org string `name:"org" required:"true" placeholder:"ORG" help:"The organization."`
}

// Run implements the command.
func (c *flagsUnsetCmd) Run(ctx context.Context, p *process) error {
	return c.administer(ctx, c.Org, func(a administration) error {
		err := a.DeleteOverride(ctx, c.Key, c.Org)
		answer := map[string]string{"key": c.Key, "organization_id": c.Org}
		return p.done(answer, err, "Switch %s has no value of its own for %s any more; the global one holds.\n", c.Key, c.Org)
	})
}

// done prints what a change came to, as JSON or as a sentence.
func (p *process) done(answer any, err error, sentence string, args ...any) error {
	switch {
	case err != nil:
		return err
	case p.json:
		return p.printJSON(answer)
	}
	p.printf(sentence, args...)
	return nil
}
