package main

import (
	"os"
	"os/exec"
	"strings"
)

// guide is what to try after the first start; every line that is indented can be pasted.
const guide = `Allocator runs at URL for the organization ORG, with a sample of real servers. Ctrl-C stops it; the next start finds
everything again. Data: PLACE.
AGAIN
In another terminal:

    export ALLOCATOR_URL=URL
    export ALLOCATOR_API_KEY=KEY

Hold a server for an order, and see why it was this one:

    ALLOCATOR reserve --order G-1001 --memory-gib 64 --drive 2x480GB,ssd --price-max "80.00 EUR" --site FSN1
    ALLOCATOR explain G-1001

Sell it, or ask what else there is:

    ALLOCATOR convert G-1001 --service svc-g-1001
    ALLOCATOR evaluate --memory-gib 128 --drive 2x960GB,nvme --price-max "60.00 EUR"

The same over HTTP; sent again, the first one answers with the same reservation:

    curl -sS "$ALLOCATOR_URL/v1/reservations" -H "Authorization: Bearer $ALLOCATOR_API_KEY" -H "Idempotency-Key: g-1002" \
      -H "Content-Type: application/json" -d '{"order_id":"G-1002","order_line":"1","requirements":
        {"sites":["FSN1"],"memory":{"mib_min":65536},"price":{"currency":"EUR","monthly_max":"80.00"}}}'
    curl -sS "$ALLOCATOR_URL/v1/orders/G-1002" -H "Authorization: Bearer $ALLOCATOR_API_KEY"

Check the database:

    ALLOCATOR doctor --database-url 'DATABASE'
`

// again stands in the guide of every start but the first.
const again = `This is not the first start, so the orders of the guide may exist already: the same command then shows the same reservation.
`

// printGuide fills the guide in. place says where the data lives.
func (p *process) printGuide(a upAnswer, place string, repeated bool) {
	note := ""
	if repeated {
		note = again
	}
	p.printf("%s", strings.NewReplacer(
		"ALLOCATOR_", "ALLOCATOR_", // before ALLOCATOR, so that names of variables stay
		"ALLOCATOR ", ownCommand()+" ",
		"PLACE", place, "AGAIN", note,
		"at URL", "at "+a.URL, "=URL", "="+a.URL, "=KEY", "="+a.APIKey,
		"organization ORG", "organization "+a.Organization, "'DATABASE'", "'"+a.DatabaseURL+"'",
	).Replace(guide))
}

// ownCommand is how this program is called from anywhere: by name if the shell finds it, else by its path.
func ownCommand() string {
	own, err := os.Executable()
	if err != nil {
		return "allocator"
	}
	if found, err := exec.LookPath("allocator"); err == nil && sameFile(found, own) {
		return "allocator"
	}
	return own
}

func sameFile(a, b string) bool {
	first, errFirst := os.Stat(a)
	second, errSecond := os.Stat(b)
	return errFirst == nil && errSecond == nil && os.SameFile(first, second)
}
