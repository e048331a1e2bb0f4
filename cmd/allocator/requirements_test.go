package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// wanted parses flags and returns what would be sent.
func wanted(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var flags struct{ requirementFlags }
	parser, err := kong.New(&flags, kong.Exit(func(int) {}))
	require.NoError(t, err)
	_, err = parser.Parse(args)
	require.NoError(t, err)
	asked, err := flags.requirements(strings.NewReader(`{"sites":["IN1"]}`))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(asked)
	require.NoError(t, err)
	return string(text), nil
}

func TestFlagsBecomeRequirements(t *testing.T) {
	t.Parallel()
	file := write(t, "order.json", `{"memory":{"mib_min":1024,"ecc":false},"gpu":null,"sites":null}`)
	for sentence, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing is any server":           {nil, `{}`},
		"a repeated flag is an or":        {[]string{"--site", "FSN1", "--site", "NBG1, Hall 2"}, `{"sites":["FSN1","NBG1, Hall 2"]}`},
		"sites to avoid":                  {[]string{"--exclude-site", "HEL1"}, `{"exclude_sites":["HEL1"]}`},
		"racks, models and makers":        {[]string{"--rack", "R1", "--model", "R6515", "--manufacturer", "Dell"}, `{"manufacturers":["Dell"],"models":["R6515"],"racks":["R1"]}`},
		"one server":                      {[]string{"--server", "srv_1"}, `{"servers":["srv_1"]}`},
		"processors":                      {[]string{"--cpu-vendor", "AMD", "--cpu-model", "EPYC 7502", "--sockets", "2", "--cores", "24", "--threads", "48"}, `{"cpu":{"cores_min":24,"models":["EPYC 7502"],"sockets_min":2,"threads_min":48,"vendors":["AMD"]}}`},
		"a benchmark":                     {[]string{"--benchmark", "passmark=20000"}, `{"cpu":{"benchmark_min":{"name":"passmark","score":20000}}}`},
		"memory in GiB":                   {[]string{"--memory-gib", "128"}, `{"memory":{"mib_min":131072}}`},
		"memory in MiB":                   {[]string{"--memory-mib", "100"}, `{"memory":{"mib_min":100}}`},
		"memory with ECC":                 {[]string{"--ecc", "--memory-type", "DDR5"}, `{"memory":{"ecc":true,"types":["DDR5"]}}`},
		"memory without ECC":              {[]string{"--no-ecc"}, `{"memory":{"ecc":false}}`},
		"drives":                          {[]string{"--drive", "2x960GB,nvme,ssd"}, `{"drives":[{"count_min":2,"interface":"nvme","medium":"ssd","nominal_gb_min":960}]}`},
		"other drives beside them":        {[]string{"--drive", "2x960gb", "--drive", "hdd, 1.92TB"}, `{"drives":[{"count_min":2,"nominal_gb_min":960},{"count_min":1,"medium":"hdd","nominal_gb_min":1920}]}`},
		"a drive of any size":             {[]string{"--drive", "nvme"}, `{"drives":[{"interface":"nvme"}]}`},
		"RAID and uplink":                 {[]string{"--raid", "hardware", "--uplink-mbps", "10000"}, `{"network":{"uplink_mbps_min":10000},"raid":"hardware"}`},
		"graphics processors by number":   {[]string{"--gpu", "2"}, `{"gpu":{"count_min":2}}`},
		"graphics processors by model":    {[]string{"--gpu", "2xRTX 4000"}, `{"gpu":{"count_min":2,"models":["RTX 4000"]}}`},
		"one graphics processor":          {[]string{"--gpu", "A100"}, `{"gpu":{"count_min":1,"models":["A100"]}}`},
		"a price":                         {[]string{"--price-max", "80.00 EUR"}, `{"price":{"currency":"EUR","monthly_max":"80.00"}}`},
		"a price with the currency apart": {[]string{"--price-max", "80", "--currency", "USD"}, `{"price":{"currency":"USD","monthly_max":"80"}}`},
		"a currency alone":                {[]string{"--currency", "EUR"}, `{"price":{"currency":"EUR"}}`},
		"tags and attributes":             {[]string{"--tag", "gold", "--exclude-tag", "old", "--attribute", "tier=a;b"}, `{"attributes":{"tier":"a;b"},"tags_all":["gold"],"tags_none":["old"]}`},
		"everything from a file":          {[]string{"--requirements", file}, `{"memory":{"ecc":false,"mib_min":1024}}`},
		"everything from standard input":  {[]string{"--requirements", "-"}, `{"sites":["IN1"]}`},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			got, err := wanted(t, c.args...)
			require.NoError(t, err)
			require.JSONEq(t, c.want, got)
		})
	}
}

func TestRequirementsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		args []string
		says string
	}{
		"a size without a unit":       {[]string{"--drive", "2x960"}, "neither a size"},
		"a size in another unit":      {[]string{"--drive", "2x960GiB"}, "neither a size"},
		"no drive at all":             {[]string{"--drive", "0x960GB"}, "whole number from 1"},
		"a fraction of a gigabyte":    {[]string{"--drive", "1.0005TB"}, "neither a size"},
		"half a gigabyte":             {[]string{"--drive", "0.5GB"}, "no whole number of GB"},
		"two sizes":                   {[]string{"--drive", "1x1TB,2x2TB"}, "neither a size"},
		"memory twice":                {[]string{"--memory-gib", "1", "--memory-mib", "1024"}, "leave one out"},
		"a price without a currency":  {[]string{"--price-max", "80"}, "one currency"},
		"a price with two currencies": {[]string{"--price-max", "80 EUR", "--currency", "USD"}, "one currency"},
		"a price with a comma":        {[]string{"--price-max", "80,00 EUR"}, "one currency"},
		"a benchmark without a score": {[]string{"--benchmark", "passmark"}, "NAME=SCORE"},
		"a score that is no number":   {[]string{"--benchmark", "passmark=fast"}, "whole number from 1"},
		"no graphics processor":       {[]string{"--gpu", "0"}, "whole number from 1"},
		"a file and flags":            {[]string{"--requirements", "-", "--site", "FSN1"}, "exclude each other"},
		"a file that is away":         {[]string{"--requirements", "/nonexistent"}, "cannot be read"},
		"a name that there is not":    {[]string{"--requirements", write(t, "a", `{"site":["FSN1"]}`)}, "site"},
		"no JSON":                     {[]string{"--requirements", write(t, "b", `sites: [FSN1]`)}, "no JSON object"},
		"two JSON values":             {[]string{"--requirements", write(t, "c", `{} {}`)}, "behind the JSON object"},
		"every mistake at once":       {[]string{"--drive", "big", "--gpu", "0", "--price-max", "cheap"}, "--price-max"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			_, err := wanted(t, c.args...)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, exitUsage, exitCode(err))
		})
	}
}
