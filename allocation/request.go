package allocation

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"allocator/inventory"
	"allocator/reservation"
)

// The limits of one transaction (DESIGN.md, promise 6).
const (
	MaxScanned  = 25 // candidates locked or tried to lock
	MaxAttempts = 5  // candidates lost in an insert race
)

// MaxWait bounds how long a request may ask to be tried again while others hold what fits.
const MaxWait = 5 * time.Second

// Request asks to reserve one server for one order line.
type Request struct {
	IdempotencyKey string
	Order          reservation.OrderLine
	CustomerRef    string // empty: no limit of open holds applies
	Requirements   Requirements
	Wait           time.Duration // how long to try again while contended, clamped to MaxWait; 0 answers at once
}

// canonical is what a request means, without its key: equal values have equal bytes.
type canonical struct {
	OrderID      string          `json:"order_id"`
	Line         string          `json:"order_line"`
	Unit         int64           `json:"unit"`
	CustomerRef  string          `json:"customer_ref"`
	Requirements json.RawMessage `json:"requirements"`
}

// Fingerprint tells whether two requests ask for the same. It is taken of the canonical value, so the order of keys,
// spaces, escapes, and an empty list against a missing one make no difference.
func (r *Request) Fingerprint() []byte { return r.fingerprint(mustJSON(r.Requirements)) }

// fingerprint takes the requirements as JSON.
func (r *Request) fingerprint(wanted json.RawMessage) []byte {
	text := mustJSON(canonical{r.Order.OrderID, r.Order.Line, r.Order.Unit, r.CustomerRef, wanted})
	sum := sha256.Sum256(text)
	return sum[:]
}

// mustJSON marshals a value of this package's own types, which cannot fail.
func mustJSON(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic("allocation: a type of our own cannot be written as JSON: " + err.Error())
	}
	return text
}

// Arguments returns the parameters of the rules' SQL for these requirements, by name; what is not asked is left out.
func (r *Requirements) Arguments() map[string]any {
	args := map[string]any{}
	for i := range rules {
		if rule := &rules[i]; rule.Arg != nil && rule.asked(r) {
			args[rule.Param] = rule.Arg(r)
		}
	}
	return args
}

// Wanted is requirements as the store takes them.
type Wanted struct {
	Rules     RuleSet         // that are asked
	Arguments json.RawMessage // of their SQL, by name
	Canonical json.RawMessage // the requirements themselves
}

// Wanted puts down what the store needs of these requirements.
func (r *Requirements) Wanted() Wanted {
	return Wanted{Rules: r.Asked(), Arguments: mustJSON(r.Arguments()), Canonical: mustJSON(r)}
}

// Candidate is a server that fits, with its place in the order of trying.
type Candidate struct {
	Server *inventory.Server
	Rank   int // from 1
}
