package main

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// configCmd shows every setting. It takes all of them as flags, so that a command line can be tried out.
type configCmd struct {
	clientSettings
	databaseSettings
	dataSettings
	serviceSettings
	serveSettings
	lockSettings
	redisSettings
	logSettings
}

func (*configCmd) examples() string {
	return `
		allocator config
		allocator config --config /etc/allocator.conf --json`
}

// effectiveSetting is one line of what configCmd shows.
type effectiveSetting struct {
	Name  string `json:"name"` // of the environment variable
	Flag  string `json:"flag"`
	Value string `json:"value"` // for a secret, what may be shown of it
	From  string `json:"from"`
}

// Run implements the command.
func (c *configCmd) Run(p *process, parsed *kong.Context) error {
	c.DataDir = defaultDataDir(p, c.DataDir)
	var list []effectiveSetting
	for _, flag := range parsed.Selected().Flags {
		if name := flag.Tag.Get(settingTag); name != "" {
			list = append(list, effectiveSetting{
				Name: envPrefix + name, Flag: "--" + flag.Name, Value: shownValue(flag.Target), From: p.sources.origin(flag.Name),
			})
		}
	}
	if p.json {
		return p.printJSON(map[string]any{"settings": list})
	}
	t := p.table("SETTING", "VALUE", "FROM")
	for _, s := range list {
		t.row(s.Name, s.Value, s.From)
	}
	return t.flush()
}

// shownSchemes are of the addresses that are shown without their passwords.
var shownSchemes = []string{"postgres", "postgresql", "redis", "rediss"}

// shownValue writes a setting without what must stay secret.
func shownValue(value reflect.Value) string {
	hidden, isSecret := reflect.TypeAssert[secret](value)
	if !isSecret {
		return fmt.Sprint(value.Interface())
	}
	if address, err := url.Parse(string(hidden)); err == nil && slices.Contains(shownSchemes, address.Scheme) {
		return withoutPassword(address)
	}
	return hidden.String()
}

// withoutPassword keeps what helps to see which database is meant.
func withoutPassword(address *url.URL) string {
	query := address.Query()
	for name := range query {
		if strings.Contains(name, "password") {
			query.Set(name, "xxxxx")
		}
	}
	address.RawQuery = query.Encode()
	return address.Redacted()
}
