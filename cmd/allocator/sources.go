package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// settingSources finds the value of a setting that is not given as a flag, and remembers where each came from. It is
// kong's resolver for everything.
type settingSources struct {
	lookupEnv func(name string) (string, bool)
	file      fileSettings
	origins   map[string]string // by name of the flag; a default has none
}

func newSettingSources(lookupEnv func(string) (string, bool)) *settingSources {
	return &settingSources{lookupEnv: lookupEnv, origins: map[string]string{}}
}

// Validate implements kong.Resolver: a name in the file that nothing reads is a mistake.
func (s *settingSources) Validate(app *kong.Application) error { return s.file.check(app) }

// Resolve implements kong.Resolver.
func (s *settingSources) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	name := flag.Tag.Get(settingTag)
	if name == "" {
		return nil, nil
	}
	value, origin, err := s.find(name, flag.Tag.Has(secretTag))
	if err != nil || origin == "" {
		return nil, err
	}
	s.origins[flag.Name] = origin
	return value, nil
}

// find takes the first place that has the setting; origin is empty if none has.
func (s *settingSources) find(name string, isSecret bool) (value, origin string, err error) {
	places := []struct {
		name   string
		lookup func(string) (string, bool)
		origin string
	}{
		{envPrefix + name, s.lookupEnv, "environment " + envPrefix + name},
		{name, s.file.lookup, "file " + s.file.path},
	}
	for _, place := range places {
		value, given := place.lookup(place.name)
		path, inFile := "", false
		if isSecret {
			path, inFile = place.lookup(place.name + fileSuffix)
		}
		switch given, inFile = given && value != "", inFile && path != ""; {
		case given && inFile:
			return "", "", fmt.Errorf("%s and %s are both set: leave one out", place.name, place.name+fileSuffix)
		case given:
			return value, place.origin, nil
		case inFile:
			value, err = readSecret(path)
			return value, place.origin + fileSuffix + " " + path, err
		}
	}
	return "", "", nil
}

// readSecret reads the file of a secret. Editors end it with a line break, which is no part of it.
func readSecret(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the file of a secret cannot be read: %w", err)
	}
	text := strings.TrimRight(string(content), "\r\n")
	if text == "" {
		return "", fmt.Errorf("the file %s holds no secret: it is empty", path)
	}
	return text, nil
}

// noteFlags remembers which settings stood on the command line.
func (s *settingSources) noteFlags(parsed *kong.Context) {
	for _, path := range parsed.Path {
		if path.Flag != nil && !path.Resolved {
			s.origins[path.Flag.Name] = "flag --" + path.Flag.Name
		}
	}
}

// origin says where the value of a flag came from.
func (s *settingSources) origin(flag string) string {
	if origin := s.origins[flag]; origin != "" {
		return origin
	}
	return "default"
}
