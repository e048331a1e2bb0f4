package bench

import (
	"math/rand/v2"

	"allocator/allocation"
	"allocator/inventory"
)

// class is one thing that orders ask for. Shares are those of the sizes of machine in the Azure trace, whose flavours
// are mapped to what sells in the auction; how many servers of the stock fit each is a fact of the real rows.
type class struct {
	name    string
	flavour string // letters of the trace; the last class takes the others
	share   int    // of a thousand
	wanted  allocation.Requirements
}

var classes = []class{
	{"64 GB", "b", 604, allocation.Requirements{Memory: allocation.MemoryRequirements{MiBMin: 64 << 10}}},
	{"64 GB ECC, 2 NVMe", "g", 185, allocation.Requirements{
		Memory: allocation.MemoryRequirements{MiBMin: 64 << 10, ECC: new(true)},
		Drives: []allocation.DriveGroup{{CountMin: 2, NominalGBMin: 480, Medium: inventory.MediumSSD, Interface: "nvme"}},
	}},
	{"128 GB, FSN1 or HEL1", "k", 99, allocation.Requirements{
		Sites: []string{"FSN1", "HEL1"}, Memory: allocation.MemoryRequirements{MiBMin: 128 << 10},
	}},
	{"2 HDD of 2 TB", "m", 90, allocation.Requirements{
		Drives: []allocation.DriveGroup{{CountMin: 2, NominalGBMin: 2000, Medium: inventory.MediumHDD}},
	}},
	{"under 60 EUR", "a", 16, allocation.Requirements{Price: &allocation.PriceLimit{Currency: "EUR", MonthlyMax: amount("60")}}},
	{"GPU", "", 6, allocation.Requirements{GPU: &allocation.GPURequirements{CountMin: 1}}},
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

// impossible asks for what no server of the stock has, so that every one of them speaks against it.
var impossible = allocation.Requirements{Memory: allocation.MemoryRequirements{MiBMin: 64 << 20}}
