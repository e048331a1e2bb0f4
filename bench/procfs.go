package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/PID/stat: a hundredth of a second on every Linux.
const tick = 10 * time.Millisecond

// stat is what is read of one process.
type stat struct {
	name   string
	parent int
	own    time.Duration // user and system
	reaped time.Duration // of children that have ended
}

// readStat reads /proc/PID/stat; the name stands in brackets and may hold anything.
func readStat(pid int) (stat, bool) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, false
	}
	begin, end := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if begin < 0 || end < 0 {
		return stat{}, false
	}
	fields := strings.Fields(string(content[end+1:])) // from the third field on
	if len(fields) < 15 {
		return stat{}, false
	}
	number := func(i int) int { n, _ := strconv.Atoi(fields[i-3]); return n }
	return stat{
		name: string(content[begin+1 : end]), parent: number(4),
		own:    time.Duration(number(14)+number(15)) * tick,
		reaped: time.Duration(number(16)+number(17)) * tick,
	}, true
}

// postmasterOf finds the parent of a backend, if that process runs here.
func postmasterOf(backend int) int {
	s, ok := readStat(backend)
	if !ok || s.name != "postgres" {
		return 0
	}
	if parent, ok := readStat(s.parent); !ok || parent.name != "postgres" {
		return 0
	}
	return s.parent
}

// treeCPU is the processor time of a postmaster and all its children, those that have ended included.
func treeCPU(postmaster int) time.Duration {
	main, ok := readStat(postmaster)
	if !ok {
		return 0
	}
	sum := main.own + main.reaped
	children, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range children {
		pid, _ := strconv.Atoi(filepath.Base(path))
		if s, ok := readStat(pid); ok && s.parent == postmaster {
			sum += s.own
		}
	}
	return sum
}
