package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// configFile is the path of the configuration file.
type configFile string

// fileSettings is a configuration file as it was read. Names are those of the environment variables without
// ALLOCATOR_, in capitals; both spellings and both cases may stand in the file.
type fileSettings struct {
	path   string
	values map[string]string
}

func (f *fileSettings) lookup(name string) (string, bool) {
	value, ok := f.values[name]
	return value, ok
}

// BeforeResolve reads the configuration file that a flag or ALLOCATOR_CONFIG names, before other settings are looked up.
func (g *globals) BeforeResolve(parsed *kong.Context) error {
	path, _ := g.sources.lookupEnv(envPrefix + "CONFIG")
	for _, step := range parsed.Path {
		if step.Flag != nil && step.Flag.Name == "config" {
			path = fmt.Sprint(parsed.FlagValue(step.Flag))
		}
	}
	if path == "" {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the configuration file cannot be read: %w", err)
	}
	values, err := parseConfigFile(content)
	if err != nil {
		return fmt.Errorf("the configuration file %s cannot be read: %w", path, err)
	}
	g.sources.file = fileSettings{path: path, values: values}
	return g.sources.file.check(parsed.Model)
}

// parseConfigFile reads either form.
func parseConfigFile(content []byte) (map[string]string, error) {
	if trimmed := bytes.TrimSpace(content); len(trimmed) > 0 && trimmed[0] == '{' {
		return parseJSONSettings(trimmed)
	}
	return parseLineSettings(content)
}

// parseJSONSettings reads {"name": value}. Numbers keep the digits they are written with.
func parseJSONSettings(content []byte) (map[string]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("it begins as a JSON object and is none: %w", err)
	}
	if decoder.More() {
		return nil, errors.New("something stands behind the JSON object")
	}
	values := map[string]string{}
	for name, value := range object {
		switch value.(type) {
		case string, json.Number, bool:
			values[canonicalSetting(name)] = fmt.Sprint(value)
		default:
			return nil, fmt.Errorf("%s must be a text, a number or true or false", name)
		}
	}
	return values, nil
}

// parseLineSettings reads NAME=VALUE lines; a value may stand in quotes, # begins a line of comment.
func parseLineSettings(content []byte) (map[string]string, error) {
	values := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !found {
			return nil, fmt.Errorf("line %d is not NAME=VALUE", number)
		}
		values[canonicalSetting(name)] = unquote(strings.TrimSpace(value))
	}
	return values, lines.Err()
}

func unquote(value string) string {
	for _, quote := range []string{`"`, `'`} {
		if len(value) >= 2 && strings.HasPrefix(value, quote) && strings.HasSuffix(value, quote) {
			return value[1 : len(value)-1]
		}
	}
	return value
}

func canonicalSetting(name string) string {
	name = strings.ToUpper(strings.ReplaceAll(strings.TrimSpace(name), "-", "_"))
	return strings.TrimPrefix(name, envPrefix)
}

// check refuses a name that no setting has: it is mistyped, and what it was meant to set would silently be the default.
func (f *fileSettings) check(app *kong.Application) error {
	known := map[string]bool{}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error { // the visitor below returns no error
		if flag, ok := node.(*kong.Flag); ok && flag.Tag.Has(settingTag) {
			known[flag.Tag.Get(settingTag)] = true
			known[flag.Tag.Get(settingTag)+fileSuffix] = flag.Tag.Has(secretTag)
		}
		return next(nil)
	})
	for name := range f.values {
		if !known[name] {
			return fmt.Errorf("the configuration file %s sets %s, which is no setting: `allocator config` lists them", f.path, name)
		}
	}
	return nil
}
