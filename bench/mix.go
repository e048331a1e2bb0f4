package bench

import (
	"math/rand/v2"
	"strconv"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/reservation"
)

// class is one thing that orders ask for. Shares are those of the sizes of machine in the Azure trace, whose flavours
// are mapped to what sells in the auction; how many servers of the stock fit each is a fact of the real rows.
type class struct {
	name    string
	flavour byte // of the trace; the first class takes what none has
	share   int  // of a thousand
	wanted  allocation.Requirements
	sql     string // the same, for those who choose by SQL
}

var classes = []class{
	{
		"64 GB", 'b', 656,
		allocation.Requirements{Memory: allocation.MemoryRequirements{MiBMin: 64 << 10}},
		`s.memory_mib >= 65536`,
	},
	{
		"64 GB ECC, 2 NVMe", 'g', 183,
		allocation.Requirements{
			Memory: allocation.MemoryRequirements{MiBMin: 64 << 10, ECC: new(true)},
			Drives: []allocation.DriveGroup{{CountMin: 2, NominalGBMin: 480, Medium: inventory.MediumSSD, Interface: "nvme"}},
		},
		`s.memory_mib >= 65536 AND s.memory_ecc AND (SELECT sum((d ->> 'count')::int) FROM jsonb_array_elements(s.drives) d
			WHERE d ->> 'medium' = 'ssd' AND d ->> 'interface' = 'nvme' AND (d ->> 'nominal_gb')::int >= 480) >= 2`,
	},
	{
		"128 GB, FSN1 or HEL1", 'k', 82,
		allocation.Requirements{
			Sites: []string{"FSN1", "HEL1"}, Memory: allocation.MemoryRequirements{MiBMin: 128 << 10},
		},
		`s.site IN ('FSN1', 'HEL1') AND s.memory_mib >= 131072`,
	},
	{
		"2 HDD of 2 TB", 'm', 58,
		allocation.Requirements{
			Drives: []allocation.DriveGroup{{CountMin: 2, NominalGBMin: 2000, Medium: inventory.MediumHDD}},
		},
		`(SELECT sum((d ->> 'count')::int) FROM jsonb_array_elements(s.drives) d
			WHERE d ->> 'medium' = 'hdd' AND (d ->> 'nominal_gb')::int >= 2000) >= 2`,
	},
	{
		"at most 60 EUR", 'a', 18,
		allocation.Requirements{Price: &allocation.PriceLimit{Currency: "EUR", MonthlyMax: amount("60")}},
		`s.price_currency = 'EUR' AND s.price_amount <= 60`,
	},
	{
		"GPU", 'o', 3,
		allocation.Requirements{GPU: &allocation.GPURequirements{CountMin: 1}},
		`(SELECT sum((g ->> 'count')::int) FROM jsonb_array_elements(s.gpus) g) >= 1`,
	},
}

func amount(text string) *inventory.Amount {
	a, err := inventory.ParseAmount(text)
	if err != nil {
		panic("bench: " + err.Error())
	}
	return &a
}

// drawClass picks a class by its share.
func drawClass(random *rand.Rand) *class {
	n := random.IntN(1000)
	for i := range classes {
		if n -= classes[i].share; n < 0 {
			return &classes[i]
		}
	}
	return &classes[0]
}

// classOf is the class of a flavour of the trace.
func classOf(flavour byte) *class {
	for i := range classes {
		if classes[i].flavour == flavour {
			return &classes[i]
		}
	}
	return &classes[0]
}

// order is one request of a round.
type order struct {
	name string // its key, its order and, in part, its customer
	*class
}

// drawing makes the requests of one round. Every contender of a round gets the same, but for their names.
type drawing func(round string) []order

// mixed draws them by the classes' shares.
func (w *world) mixed(round string) []order {
	random := rand.New(rand.NewPCG(w.seed, 1)) //nolint:gosec // the same requests for the same seed
	drawn := make([]order, w.most())
	for i := range drawn {
		drawn[i] = order{round + strconv.Itoa(i), drawClass(random)}
	}
	return drawn
}

// following asks for what the trace asks for.
func following(at []arrival) drawing {
	return func(round string) []order {
		drawn := make([]order, len(at))
		for i := range drawn {
			drawn[i] = order{round + strconv.Itoa(i), at[i].class}
		}
		return drawn
	}
}

func (o order) request() allocation.Request { return request(o.name, o.wanted) }

func request(name string, wanted allocation.Requirements) allocation.Request {
	return allocation.Request{
		IdempotencyKey: name,
		Order:          reservation.OrderLine{OrderID: name, Line: "1", Unit: 1},
		CustomerRef:    "customer-" + name,
		Requirements:   wanted,
	}
}

// impossible asks for what no server of the stock has, so that every one of them speaks against it.
var impossible = allocation.Requirements{Memory: allocation.MemoryRequirements{MiBMin: 64 << 20}}
