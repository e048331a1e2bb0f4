package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"allocator/client"
)

// The short forms in which parts of a server are asked for on the command line.

var drivesPattern = regexp.MustCompile(`^(?:(\d{1,4})[xX*])?(\d{1,9}(?:\.\d{1,3})?)([gGtT][bB])$`)

// parseDrives reads "2x960GB,nvme,ssd": how many, of which size at least, and words in any order.
func parseDrives(text string) (client.DriveRequirement, error) {
	var group client.DriveRequirement
	for word := range strings.SplitSeq(text, ",") {
		word = strings.ToLower(strings.TrimSpace(word))
		switch size := drivesPattern.FindStringSubmatch(word); {
		case size != nil && group.NominalGbMin == 0:
			gb, err := gigabytes(size[2], size[3])
			if err != nil {
				return group, fmt.Errorf("--drive %q: %w", text, err)
			}
			group.NominalGbMin, group.CountMin = gb, 1
			if size[1] != "" {
				if group.CountMin, err = positive(size[1], "the count"); err != nil {
					return group, fmt.Errorf("--drive %q: %w", text, err)
				}
			}
		case word == "ssd" || word == "hdd":
			group.Medium = client.DriveRequirementMedium(word)
		case slices.Contains([]string{"nvme", "sata", "sas"}, word):
			group.Interface = word
		default:
			return group, fmt.Errorf("--drive %q: %q is neither a size such as 2x960GB or 1.92TB, nor ssd, hdd, nvme, sata or sas", text, word)
		}
	}
	return group, nil
}

// gigabytes reads a decimal size as printed on the label.
func gigabytes(number, unit string) (int64, error) {
	size, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, err
	}
	if strings.EqualFold(unit, "TB") {
		size *= 1000
	}
	gb := math.Round(size)
	if gb < 1 || math.Abs(size-gb) > 1e-6 {
		return 0, fmt.Errorf("%s%s is no whole number of GB", number, unit)
	}
	return int64(gb), nil
}

var gpuPattern = regexp.MustCompile(`^(?:(\d{1,4})(?:[xX*]|$))?(.*)$`)

// parseGPU reads "2", "2xA100" or "A100"; nil if nothing is asked.
func parseGPU(text string) (*client.GPURequirements, error) {
	if text == "" {
		return nil, nil
	}
	found := gpuPattern.FindStringSubmatch(strings.TrimSpace(text))
	wanted := &client.GPURequirements{CountMin: 1}
	if found[1] != "" {
		var err error
		if wanted.CountMin, err = positive(found[1], "the count of --gpu"); err != nil {
			return nil, err
		}
	}
	if model := strings.TrimSpace(found[2]); model != "" {
		wanted.Models = client.Names{model}
	}
	return wanted, nil
}

// parseBenchmark reads "passmark=20000".
func parseBenchmark(text string) (client.BenchmarkMin, error) {
	if text == "" {
		return client.BenchmarkMin{}, nil
	}
	name, score, found := strings.Cut(text, "=")
	if !found || name == "" {
		return client.BenchmarkMin{}, fmt.Errorf("--benchmark %q: write NAME=SCORE, such as passmark=20000", text)
	}
	n, err := positive(score, "the score of --benchmark")
	return client.BenchmarkMin{Name: name, Score: n}, err
}

var pricePattern = regexp.MustCompile(`^(\d{1,12}(?:\.\d{1,4})?) ?([A-Z]{3})$`)

// parsePriceLimit reads "80.00 EUR"; the currency may come from its own flag instead.
func parsePriceLimit(limit, currency string) (client.PriceLimit, error) {
	switch {
	case limit == "":
		return client.PriceLimit{Currency: currency}, nil
	case currency != "":
		limit += " " + currency
	}
	found := pricePattern.FindStringSubmatch(limit)
	if found == nil {
		return client.PriceLimit{}, fmt.Errorf(`--price-max %q: write an amount and one currency, such as "80.00 EUR"`, limit)
	}
	return client.PriceLimit{MonthlyMax: found[1], Currency: found[2]}, nil
}
