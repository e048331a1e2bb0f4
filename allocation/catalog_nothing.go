package allocation

import "time"

// emptyHanded says why nothing is eligible, and when the first of the servers that would fit may come back.
func (p *pass) emptyHanded() (Cause, *time.Time) {
	var matching, taken int
	var next int64
	for i, k := range p.kinds {
		if !p.verdicts[i].Eligible() {
			continue
		}
		for _, member := range k.order {
			e := &p.servers[member]
			if !e.status.state.Sellable() || !p.ownVerdict(e).Eligible() {
				continue
			}
			matching++
			if e.status.hold == held {
				taken++
				next = earlier(next, e.until)
			}
		}
	}
	return causeOfNothing(len(p.servers), matching, taken), deadline(next)
}
