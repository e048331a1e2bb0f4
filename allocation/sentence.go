package allocation

import (
	"fmt"
	"time"
)

// sentence says in words what the decision came to and what can be done.
func (d *Decision) sentence() string {
	switch d.Outcome {
	case OutcomeReserved:
		return d.Choice.Text
	case OutcomeNoCapacity:
		return d.noCapacity()
	case OutcomeContended:
		return d.contended()
	case OutcomeHoldLimit:
		return "The customer has as many open reservations as are allowed: convert or cancel one of them first."
	case OutcomeOrderLineHeld:
		return "The order line already has a server, asked for with other requirements or for another customer: cancel that reservation first, or use another order line."
	case OutcomeFeatureDisabled:
		return ErrFeatureDisabled.Error()
	case OutcomeReplayed, OutcomeExisting:
	}
	return ""
}

func (d *Decision) noCapacity() string {
	nearest := ""
	if d.Nearest != nil {
		nearest = " " + d.Nearest.Text
	}
	switch d.Cause {
	case CauseInventoryEmpty:
		return "There are no servers in the inventory: add some first."
	case CauseAllHeld:
		return fmt.Sprintf("Every server that fits is held or sold; the first hold runs out at %s, unless it is renewed or paid.%s",
			d.NextExpiryAt.UTC().Format(time.RFC3339), nearest)
	case CauseAllSold:
		return "Every server that fits is sold: buy more hardware." + nearest
	default:
		return fmt.Sprintf("None of %s meets every requirement.%s", servers(d.Servers), nearest)
	}
}

func (d *Decision) contended() string {
	switch d.Cause {
	case CauseSameKey:
		return "Another request with the same Idempotency-Key is being answered at this moment: send it again shortly and get that answer."
	case CauseSameOrderLine:
		return "Another request for the same order line is being answered at this moment: try again shortly."
	case CauseScanLimit:
		return fmt.Sprintf("Others were at the first %d servers that fit, and more fit that were not tried: try again shortly.", MaxScanned)
	case CauseAttemptLimit:
		return fmt.Sprintf("Others were faster at %d servers in a row: try again shortly.", MaxAttempts)
	default:
		return fmt.Sprintf("There were %s that fit, and others had each of them at that moment: try again shortly.", servers(d.Eligible))
	}
}
