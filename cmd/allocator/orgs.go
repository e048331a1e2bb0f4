package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"allocator/client"
)

// orgsCmd keeps organizations. It needs the database or a key with the scope platform.
type orgsCmd struct {
	List   orgsListCmd   `cmd:"" help:"List the organizations."`
	Show   orgsShowCmd   `cmd:"" help:"Show one organization."`
	Create orgsCreateCmd `cmd:"" help:"Create an organization. Its release switch is off until it is turned on."`
	Set    orgsSetCmd    `cmd:"" help:"Change an organization's settings."`
}

func (*orgsCmd) examples() string {
	return `
		allocator orgs create "Acme Hosting" --id acme
		allocator flags set reservations on --org acme
		allocator orgs set acme --hold-time 30m`
}

type orgsListCmd struct{ adminSettings }

// Run implements the command.
func (c *orgsListCmd) Run(ctx context.Context, p *process) error {
	return c.administer(ctx, "", func(a administration) error {
		list, err := a.Organizations(ctx)
		if err != nil {
			return err
		}
		if p.json {
			return p.printJSON(map[string]any{"items": list})
		}
		t := p.table("ID", "NAME", "HOLD TIME", "HOLD LIMIT", "CLOSING", "CREATED")
		for _, o := range list {
			t.row(o.ID, o.Name, holdTime(o), strconv.Itoa(o.HoldLimit), yesNo(o.Closing), day(o.CreatedAt))
		}
		return t.flush()
	})
}

type orgsShowCmd struct {
	adminSettings
	ID string `arg:"" help:"The organization."`
}

// Run implements the command.
func (c *orgsShowCmd) Run(ctx context.Context, p *process) error {
	return c.administer(ctx, c.ID, func(a administration) error {
		org, err := a.Organization(ctx, c.ID)
		return p.showOrganization(org, err)
	})
}

type orgsCreateCmd struct {
	adminSettings
	Name      string         `arg:"" help:"What people call it."`
	ID        string         `name:"id" placeholder:"ID" help:"Its short name; made from the name if left out."`
	HoldTime  *time.Duration `name:"hold-time" placeholder:"TIME" help:"How long a reservation holds its server (15m)."`
	HoldLimit *int           `name:"hold-limit" placeholder:"N" help:"How many open holds one customer may have (10)."`
}

// Run implements the command.
func (c *orgsCreateCmd) Run(ctx context.Context, p *process) error {
	return c.administer(ctx, "", func(a administration) error {
		org, err := a.CreateOrganization(ctx, client.NewOrganization{
			ID: c.ID, Name: c.Name, HoldSeconds: inSeconds(c.HoldTime), HoldLimit: c.HoldLimit,
		})
		if err := p.showOrganization(org, err); err != nil || p.json {
			return err
		}
		p.notef("%s", c.nextSteps(p.sources.origin("database-url"), org.ID))
		return nil
	})
}

// nextSteps are what a new organization lacks. Its first key can only be made on the database; origin is where the
// database URL came from, since what stands in a setting need not be typed again.
func (c *orgsCreateCmd) nextSteps(origin, org string) string {
	typed := " --database-url URL"
	if c.DatabaseURL != "" && !strings.HasPrefix(origin, "flag") {
		typed = ""
	}
	return fmt.Sprintf("\nNext, its first key, and the switch that lets it reserve:\n"+
		"  allocator keys create \"first key\" --scope checkout,orders,support,operator,admin --org %[1]s%[2]s\n"+
		"  allocator flags set reservations on --org %[1]s%[2]s", org, typed)
}

type orgsSetCmd struct {
	adminSettings
	ID        string         `arg:"" help:"The organization."`
	Name      *string        `name:"name" placeholder:"NAME" help:"What people call it."`
	HoldTime  *time.Duration `name:"hold-time" placeholder:"TIME" help:"How long a new or renewed reservation holds its server."`
	HoldLimit *int           `name:"hold-limit" placeholder:"N" help:"How many open holds one customer may have."`
	Closing   *bool          `name:"closing" negatable:"" help:"No new reservations; everything that exists goes on."`
}

// Run implements the command.
func (c *orgsSetCmd) Run(ctx context.Context, p *process) error {
	patch := client.OrganizationPatch{Name: c.Name, HoldSeconds: inSeconds(c.HoldTime), HoldLimit: c.HoldLimit, Closing: c.Closing}
	if patch == (client.OrganizationPatch{}) {
		return usagef("nothing is to be changed: give --name, --hold-time, --hold-limit or --closing")
	}
	return c.administer(ctx, c.ID, func(a administration) error {
		org, err := a.UpdateOrganization(ctx, c.ID, patch)
		return p.showOrganization(org, err)
	})
}

func (p *process) showOrganization(o client.Organization, err error) error {
	switch {
	case err != nil:
		return err
	case p.json:
		return p.printJSON(o)
	}
	p.printf("organization %s (%s)\n  hold time   %s\n  hold limit  %d open holds per customer\n  closing     %s\n  created     %s\n",
		o.ID, o.Name, holdTime(o), o.HoldLimit, yesNo(o.Closing), instant(o.CreatedAt))
	return nil
}

func holdTime(o client.Organization) string { return span(time.Duration(o.HoldSeconds) * time.Second) }

func inSeconds(d *time.Duration) *int {
	if d == nil {
		return nil
	}
	seconds := int(d.Seconds())
	return &seconds
}
