package inventory

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Amount is an exact amount of money in ten-thousandths of the currency's unit. Money never passes through a float.
type Amount int64

const amountScale = 10_000

// The largest amount, 999,999,999,999.9999 of any currency, fits numeric(16,4) and an int64 with room to spare.
const maxAmount = 999_999_999_999*amountScale + amountScale - 1

var amountPattern = regexp.MustCompile(`^(\d{1,12})(?:\.(\d{1,4}))?$`)

// ParseAmount reads a decimal text such as "38", "38.5" or "38.0000". Signs, exponents, separators of thousands and
// more than four decimals are refused, since each of them has been seen to mean something else to somebody.
func ParseAmount(text string) (Amount, error) {
	m := amountPattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is no amount of money: write digits with at most four decimals after a point, such as \"38.00\"", text)
	}
	whole, _ := strconv.ParseInt(m[1], 10, 64)
	fraction, _ := strconv.ParseInt((m[2] + "0000")[:4], 10, 64)
	return Amount(whole*amountScale + fraction), nil
}

// AmountFromFloat rounds a float that a foreign feed insists on to the nearest ten-thousandth.
func AmountFromFloat(f float64) (Amount, error) {
	scaled := math.Round(f * amountScale)
	if math.IsNaN(scaled) || scaled < 0 || scaled > maxAmount {
		return 0, fmt.Errorf("%v is no amount of money: it must lie between 0 and 999999999999.9999", f)
	}
	return Amount(scaled), nil
}

// String writes the amount with at least two decimals: "38.00", "0.0529".
func (a Amount) String() string {
	text := fmt.Sprintf("%d.%04d", int64(a)/amountScale, int64(a)%amountScale)
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > 3 {
		text = strings.TrimSuffix(text, "0")
	}
	return text
}

// MarshalText writes the amount as String does, so that JSON carries money as text.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what ParseAmount reads.
func (a *Amount) UnmarshalText(text []byte) error {
	parsed, err := ParseAmount(string(text))
	if err == nil {
		*a = parsed
	}
	return err
}
