package main

import (
	"fmt"
	"strings"

	"allocator/client"
)

// barWidth is the longest bar of a funnel, in characters.
const barWidth = 24

// funnel draws how the servers became fewer: one bar per reason, the most frequent first, and what was left.
func (p *process) funnel(indent string, servers, eligible int, counts []client.ReasonCount) {
	p.printf("%s%s looked at, %d met every requirement\n", indent, plural(servers, "server"), eligible)
	p.bars(indent+"  ", servers, counts)
}

// bars draws the reasons against a whole.
func (p *process) bars(indent string, whole int, counts []client.ReasonCount) {
	width, digits := 0, len(fmt.Sprint(whole))
	for _, c := range counts {
		width = max(width, len(reasonName(c)))
	}
	for _, c := range counts {
		p.printf("%s%-*s  %-*s  %*d  %s\n", indent, width, reasonName(c), barWidth, bar(c.Servers, whole), digits, c.Servers, c.Text)
	}
}

// reasonName tells apart the attributes that nobody recorded.
func reasonName(c client.ReasonCount) string {
	if c.Code == "unknown_attribute" {
		return "unknown " + c.Requirement
	}
	return string(c.Code)
}

// bar is as long as its share, and visible however small that is.
func bar(part, whole int) string {
	if whole <= 0 || part <= 0 {
		return ""
	}
	return strings.Repeat("#", max(1, min(part, whole)*barWidth/whole))
}
