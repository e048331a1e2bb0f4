package allocation

import (
	"fmt"
	"time"
)

// ReasonCount says how many servers one reason left out. A server with three reasons counts in three of them.
type ReasonCount struct {
	Reason
	Servers int    `json:"servers"`
	Text    string `json:"text"`
	Remedy  string `json:"remedy"`
}

func appendCount(counts []ReasonCount, reason Reason, servers int) []ReasonCount {
	if servers == 0 {
		return counts
	}
	sentence, remedy := Describe(reason)
	return append(counts, ReasonCount{Reason: reason, Servers: servers, Text: sentence, Remedy: remedy})
}

// Nearest says which one requirement to relax, and how many free servers that would give at once.
type Nearest struct {
	Requirement string `json:"requirement"`
	Servers     int    `json:"servers"`
	Text        string `json:"text"`
}

// earlier is the smaller of two deadlines of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// deadline turns Unix microseconds into a time; 0 is none.
func deadline(micro int64) *time.Time {
	if micro == 0 {
		return nil
	}
	at := time.UnixMicro(micro).UTC()
	return &at
}

func servers(n int) string {
	if n == 1 {
		return "1 server"
	}
	return fmt.Sprintf("%d servers", n)
}
