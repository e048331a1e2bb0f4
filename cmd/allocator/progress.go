package main

import (
	"fmt"
	"strings"
)

// progressWidth is how many characters a progress bar has.
const progressWidth = 24

// bar draws how much of long work is done over the line that it drew last, if somebody watches.
func (p *process) bar(done, total int, what string) {
	if !p.terminal {
		return
	}
	filled := 0
	if total > 0 {
		filled = min(progressWidth, progressWidth*done/total)
	}
	fmt.Fprintf(p.stderr, "\r\x1b[K[%s%s] %s", strings.Repeat("#", filled), strings.Repeat(".", progressWidth-filled), what)
}

// endBar leaves the line to what comes next.
func (p *process) endBar() {
	if p.terminal {
		fmt.Fprint(p.stderr, "\r\x1b[K")
	}
}
