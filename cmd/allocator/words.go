package main

import (
	"fmt"
	"strings"
	"time"

	"allocator/client"
)

// Words that several commands print.

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// instant writes a time as people compare it: UTC, to the second.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// span writes a duration without its zero parts: "15m", "1h30m", "45s".
func span(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// plural counts things in words: "1 server", "25 servers".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// actor names whoever did something. The id of a key says that it is one.
func actor(a client.Actor) string {
	switch {
	case a.ID == "":
		return a.Kind
	case a.Kind == "key":
		return a.ID
	default:
		return a.Kind + " " + a.ID
	}
}
