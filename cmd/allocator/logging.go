package main

import (
	"log/slog"
)

// logger writes to stderr, since stdout is for what was asked for.
func (p *process) logger(level slog.Level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "text" {
		return slog.New(slog.NewTextHandler(p.stderr, options))
	}
	return slog.New(slog.NewJSONHandler(p.stderr, options))
}
