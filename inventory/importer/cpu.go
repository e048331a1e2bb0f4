package importer

import (
	"regexp"
	"strings"
)

var (
	cpuNoise    = regexp.MustCompile(`(?i)\((?:r|tm)\)|\bCPU\b|\b\d+-Core\b|\bProcessor\b|@.*$`)
	xeonVersion = regexp.MustCompile(`(?i)^(E[357]-\d{4}[A-Z]?) ?v(\d)$`)
)

// vendors by the first word of a processor's name.
var vendors = map[string]string{"intel": "Intel", "amd": "AMD", "ampere": "Ampere"}

// cpuName takes a processor's name apart. Texts are compared exactly, so the many spellings of one processor become one:
// "Intel(R) Xeon(R) CPU E3-1275 v5 @ 3.60GHz", "Intel XEON E3-1275V5" are Intel's Xeon E3-1275 v5. A name without a
// known vendor is kept whole, its vendor unknown.
func cpuName(text string) (vendor, model string) {
	words := strings.Fields(cpuNoise.ReplaceAllString(text, " "))
	if len(words) == 0 {
		return "", ""
	}
	vendor, ok := vendors[strings.ToLower(words[0])]
	if ok {
		words = words[1:]
	}
	for i, word := range words {
		if strings.EqualFold(word, "xeon") {
			words[i] = "Xeon"
		}
	}
	for i := range words {
		name := strings.Join(words[i:], " ")
		if m := xeonVersion.FindStringSubmatch(name); m != nil {
			words = append(words[:i:i], strings.ToUpper(m[1])+" v"+m[2])
			break
		}
	}
	return vendor, strings.Join(words, " ")
}
