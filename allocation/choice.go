package allocation

import (
	"fmt"
	"strings"

	"allocator/inventory"
)

// Choice is why one server was chosen, frozen on its reservation for as long as that row is kept.
type Choice struct {
	Code       Code             `json:"code"` // always CodeChosen
	Text       string           `json:"text"`
	Rank       int              `json:"rank"`
	Servers    int              `json:"servers"`  // looked at
	Eligible   int              `json:"eligible"` // of these, how many fitted
	Size       int64            `json:"size"`
	Price      *inventory.Price `json:"price,omitempty"`
	PassedOver []Walked         `json:"passed_over,omitempty"` // better ranked, and not to be had at that moment
}

// explainChoice freezes why c was chosen after the walk so far.
func explainChoice(c Candidate, looked, eligible int, walked []Walked) Choice {
	choice := Choice{
		Code: CodeChosen, Rank: c.Rank, Servers: looked, Eligible: eligible,
		Size: c.Server.Size(), Price: c.Server.Price, PassedOver: append([]Walked(nil), walked...),
	}
	text := fmt.Sprintf("Of %s, %d met every requirement; %s was number %d of them: the smallest machine that fits first, then the cheapest, then an order that differs for each request.",
		servers(choice.Servers), choice.Eligible, nameOf(c.Server), c.Rank)
	if len(walked) > 0 {
		text += fmt.Sprintf(" Passed over: %s.", passedOver(walked))
	}
	choice.Text = text
	return choice
}

// passedOver counts the outcomes of the walk in words.
func passedOver(walked []Walked) string {
	words := []struct {
		outcome TryOutcome
		text    string
	}{
		{TrySkipped, "taken by another order at that moment"},
		{TryStale, "no longer fitting when it was locked"},
		{TryLost, "lost to another order a moment earlier"},
	}
	var parts []string
	for _, w := range words {
		n := 0
		for _, one := range walked {
			if one.Outcome == w.outcome {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, w.text))
		}
	}
	return strings.Join(parts, ", ")
}

// nameOf names a server for people.
func nameOf(s *inventory.Server) string {
	if s.Name != "" {
		return s.Name
	}
	return string(s.ID)
}
