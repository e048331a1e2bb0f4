package allocation

// The checks that need more than a line, and the arguments of the rules. An argument of nil means that the order does
// not ask.

func checkBenchmark(r *Requirements, f *Facts) Finding {
	score, known := f.Server.CPU.Benchmarks[r.CPU.BenchmarkMin.Name]
	if !known {
		return Unknown
	}
	return holds(score >= r.CPU.BenchmarkMin.Score)
}

func checkECC(r *Requirements, f *Facts) Finding {
	if f.Server.Memory.ECC == nil {
		return Unknown
	}
	return holds(*f.Server.Memory.ECC == *r.Memory.ECC)
}

func checkDrives(r *Requirements, f *Facts) Finding {
	if f.Server.Drives == nil {
		return Unknown
	}
	return holds(drivesFit(f.Server.Drives, r.Drives))
}

func checkGPU(r *Requirements, f *Facts) Finding {
	if f.Server.GPUs == nil {
		return Unknown
	}
	var have int64
	for _, g := range f.Server.GPUs {
		if len(r.GPU.Models) == 0 || oneOf(r.GPU.Models, g.Model) == Holds {
			have += g.Count
		}
	}
	return holds(have >= r.GPU.CountMin)
}

func checkCurrency(r *Requirements, f *Facts) Finding {
	if f.Server.Price == nil {
		return Unknown
	}
	return holds(f.Server.Price.Currency == r.Price.Currency)
}

func checkPrice(r *Requirements, f *Facts) Finding {
	p := f.Server.Price
	return holds(p == nil || p.Currency != r.Price.Currency || p.Amount <= *r.Price.MonthlyMax)
}

func checkAttributes(r *Requirements, f *Facts) Finding {
	finding := Holds
	for name, wanted := range r.Attributes {
		switch have, known := f.Server.Attributes[name]; {
		case known && have != wanted:
			return Fails
		case !known:
			finding = Unknown
		}
	}
	return finding
}

func list[T any](values []T) any {
	if len(values) == 0 {
		return nil
	}
	return values
}

func least(wanted int64) any {
	if wanted == 0 {
		return nil
	}
	return wanted
}

func text[T ~string](wanted T) any {
	if wanted == "" {
		return nil
	}
	return wanted
}

func pointer[T any](wanted *T) any {
	if wanted == nil {
		return nil
	}
	return wanted
}

func argCurrency(r *Requirements) any {
	if r.Price == nil {
		return nil
	}
	return r.Price.Currency
}

func argPriceMax(r *Requirements) any {
	if r.Price == nil || r.Price.MonthlyMax == nil {
		return nil
	}
	return int64(*r.Price.MonthlyMax)
}

func argAttributes(r *Requirements) any {
	if len(r.Attributes) == 0 {
		return nil
	}
	return r.Attributes
}
