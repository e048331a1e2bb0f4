package bench

import (
	_ "embed" // the trace is part of the program
	"fmt"
	"strconv"
	"strings"
	"time"
)

//go:embed trace/azure.txt
var azureTrace string

// arrival is one request of the trace.
type arrival struct {
	at    time.Duration // from the beginning
	class *class
}

// arrivals plays bins of the trace, one a second, from the given one on, for that many seconds. Batches are spread evenly
// over their second, and what is in one comes at the same instant.
func arrivals(trace string, from, seconds int) ([]arrival, error) {
	bins := strings.Split(strings.TrimSpace(trace), "\n")
	var all []arrival
	for second := range seconds {
		batches := strings.Fields(bins[(from+second)%len(bins)])
		for i, batch := range batches {
			at := time.Duration(second)*time.Second + time.Second*time.Duration(i)/time.Duration(len(batches))
			classes, err := readBatch(batch)
			if err != nil {
				return nil, err
			}
			for _, c := range classes {
				all = append(all, arrival{at, c})
			}
		}
	}
	return all, nil
}

// readBatch reads "3b2g".
func readBatch(text string) (batch []*class, err error) {
	digits := 0
	for i := range len(text) {
		if text[i] >= '0' && text[i] <= '9' {
			continue
		}
		n, err := strconv.Atoi(text[digits:i])
		if err != nil {
			return nil, fmt.Errorf("the trace has a batch that cannot be read: %q", text)
		}
		for range n {
			batch = append(batch, classOf(text[i]))
		}
		digits = i + 1
	}
	if digits != len(text) {
		return nil, fmt.Errorf("the trace has a batch that cannot be read: %q", text)
	}
	return batch, nil
}
