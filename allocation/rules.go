package allocation

import (
	"cmp"
	"slices"

	"allocator/inventory"
)

// The codes of the rejections.
const (
	CodeSite             Code = "site"
	CodeRack             Code = "rack"
	CodeManufacturer     Code = "manufacturer"
	CodeModel            Code = "model"
	CodeServerExcluded   Code = "server_excluded"
	CodeCPUVendor        Code = "cpu_vendor"
	CodeCPUModel         Code = "cpu_model"
	CodeSockets          Code = "sockets"
	CodeCores            Code = "cores"
	CodeThreads          Code = "threads"
	CodeBenchmark        Code = "benchmark"
	CodeMemorySize       Code = "memory_size"
	CodeMemoryECC        Code = "memory_ecc"
	CodeMemoryType       Code = "memory_type"
	CodeDrives           Code = "drives"
	CodeRAID             Code = "raid"
	CodeGPU              Code = "gpu"
	CodeUplink           Code = "uplink"
	CodePrice            Code = "price"
	CodeCurrencyMismatch Code = "currency_mismatch"
	CodeTagMissing       Code = "tag_missing"
	CodeTagExcluded      Code = "tag_excluded"
	CodeAttribute        Code = "attribute"
	CodeStatePlanned     Code = "state_planned"
	CodeStateStaged      Code = "state_staged"
	CodeStateCleaning    Code = "state_cleaning"
	CodeStateMaintenance Code = "state_maintenance"
	CodeStateFailed      Code = "state_failed"
	CodeStateRetired     Code = "state_retired"
	CodeHeld             Code = "held"
	CodeBound            Code = "bound"
)

// rules is the table of reasons. Reasons are listed in its order, and of equally near misses the first counts. A row's
// position is its bit in a Verdict, which never leaves the process: frozen decisions hold codes. At most 63 rows.
var rules = []Rule{
	{
		Code: CodeSite, Requirement: "sites", Sentence: "It stands at another site.", Remedy: "Allow more sites.",
		Param: "sites", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.Sites) },
		HoldsSQL: "s.site = ANY (q.sites)",
		Check:    func(r *Requirements, f *Facts) Finding { return oneOf(r.Sites, f.Server.Site) },
	},
	{
		Code: CodeSite, Requirement: "exclude_sites", Sentence: "It stands at a site that the order excludes.",
		Remedy: "Exclude fewer sites.",
		Param:  "exclude_sites", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.ExcludeSites) },
		HoldsSQL: "s.site <> ALL (q.exclude_sites)",
		Check: func(r *Requirements, f *Facts) Finding {
			return holds(!slices.Contains(r.ExcludeSites, f.Server.Site))
		},
	},
	{
		Code: CodeRack, Requirement: "racks", Own: true, Sentence: "It stands in another rack.", Remedy: "Allow more racks.",
		Param: "racks", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.Racks) },
		UnknownSQL: "s.rack IS NULL", HoldsSQL: "s.rack = ANY (q.racks)",
		Check: func(r *Requirements, f *Facts) Finding { return oneOf(r.Racks, f.Server.Rack) },
	},
	{
		Code: CodeManufacturer, Requirement: "manufacturers", Sentence: "Another manufacturer made it.",
		Remedy: "Allow more manufacturers.",
		Param:  "manufacturers", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.Manufacturers) },
		UnknownSQL: "s.manufacturer IS NULL", HoldsSQL: "s.manufacturer = ANY (q.manufacturers)",
		Check: func(r *Requirements, f *Facts) Finding { return oneOf(r.Manufacturers, f.Server.Manufacturer) },
	},
	{
		Code: CodeModel, Requirement: "models", Sentence: "It is another model.", Remedy: "Allow more models.",
		Param: "models", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.Models) },
		UnknownSQL: "s.model IS NULL", HoldsSQL: "s.model = ANY (q.models)",
		Check: func(r *Requirements, f *Facts) Finding { return oneOf(r.Models, f.Server.Model) },
	},
	{
		Code: CodeServerExcluded, Requirement: "servers", Own: true, Sentence: "It is not among the servers that the order names.",
		Remedy: "Name more servers, or none.",
		Param:  "servers", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.Servers) },
		HoldsSQL: "'srv_' || replace(s.id::text, '-', '') = ANY (q.servers)",
		Check:    func(r *Requirements, f *Facts) Finding { return holds(slices.Contains(r.Servers, f.Server.ID)) },
	},
	{
		Code: CodeCPUVendor, Requirement: "cpu.vendors", Sentence: "Its processors are of another vendor.",
		Remedy: "Allow more processor vendors.",
		Param:  "cpu_vendors", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.CPU.Vendors) },
		UnknownSQL: "s.cpu_vendor IS NULL", HoldsSQL: "s.cpu_vendor = ANY (q.cpu_vendors)",
		Check: func(r *Requirements, f *Facts) Finding { return oneOf(r.CPU.Vendors, f.Server.CPU.Vendor) },
	},
	{
		Code: CodeCPUModel, Requirement: "cpu.models", Sentence: "Its processors are of another model.",
		Remedy: "Allow more processor models.",
		Param:  "cpu_models", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.CPU.Models) },
		UnknownSQL: "s.cpu_model IS NULL", HoldsSQL: "s.cpu_model = ANY (q.cpu_models)",
		Check: func(r *Requirements, f *Facts) Finding { return oneOf(r.CPU.Models, f.Server.CPU.Model) },
	},
	{
		Code: CodeSockets, Requirement: "cpu.sockets_min", Sentence: "It has fewer processor sockets than asked for.",
		Remedy: "Ask for fewer sockets.",
		Param:  "sockets_min", ParamType: "bigint", Arg: func(r *Requirements) any { return least(r.CPU.SocketsMin) },
		UnknownSQL: "s.cpu_sockets IS NULL", HoldsSQL: "s.cpu_sockets >= q.sockets_min",
		Check: func(r *Requirements, f *Facts) Finding { return atLeast(r.CPU.SocketsMin, f.Server.CPU.Sockets) },
	},
	{
		Code: CodeCores, Requirement: "cpu.cores_min", Sentence: "It has fewer cores than asked for.",
		Remedy: "Ask for fewer cores.",
		Param:  "cores_min", ParamType: "bigint", Arg: func(r *Requirements) any { return least(r.CPU.CoresMin) },
		UnknownSQL: "s.cpu_cores IS NULL", HoldsSQL: "s.cpu_cores >= q.cores_min",
		Check: func(r *Requirements, f *Facts) Finding { return atLeast(r.CPU.CoresMin, f.Server.CPU.Cores) },
	},
	{
		Code: CodeThreads, Requirement: "cpu.threads_min", Sentence: "It has fewer threads than asked for.",
		Remedy: "Ask for fewer threads.",
		Param:  "threads_min", ParamType: "bigint", Arg: func(r *Requirements) any { return least(r.CPU.ThreadsMin) },
		UnknownSQL: "s.cpu_threads IS NULL", HoldsSQL: "s.cpu_threads >= q.threads_min",
		Check: func(r *Requirements, f *Facts) Finding { return atLeast(r.CPU.ThreadsMin, f.Server.CPU.Threads) },
	},
	{
		Code: CodeBenchmark, Requirement: "cpu.benchmark_min", Sentence: "It scores lower in the benchmark than asked for.",
		Remedy: "Ask for a lower score.",
		Param:  "benchmark", ParamType: "jsonb", Arg: func(r *Requirements) any { return pointer(r.CPU.BenchmarkMin) },
		UnknownSQL: "NOT s.cpu_benchmarks ? (q.benchmark ->> 'name')",
		HoldsSQL:   "(s.cpu_benchmarks ->> (q.benchmark ->> 'name'))::bigint >= (q.benchmark ->> 'score')::bigint",
		Check:      checkBenchmark,
	},
	{
		Code: CodeMemorySize, Requirement: "memory.mib_min", Sentence: "It has less memory than asked for.",
		Remedy: "Ask for less memory.",
		Param:  "memory_mib_min", ParamType: "bigint", Arg: func(r *Requirements) any { return least(r.Memory.MiBMin) },
		UnknownSQL: "s.memory_mib IS NULL", HoldsSQL: "s.memory_mib >= q.memory_mib_min",
		Check: func(r *Requirements, f *Facts) Finding { return atLeast(r.Memory.MiBMin, f.Server.Memory.MiB) },
	},
	{
		Code: CodeMemoryECC, Requirement: "memory.ecc", Sentence: "Its memory differs from what was asked in error correction.",
		Remedy: "Leave open whether memory corrects errors.",
		Param:  "memory_ecc", ParamType: "boolean", Arg: func(r *Requirements) any { return pointer(r.Memory.ECC) },
		UnknownSQL: "s.memory_ecc IS NULL", HoldsSQL: "s.memory_ecc = q.memory_ecc",
		Check: checkECC,
	},
	{
		Code: CodeMemoryType, Requirement: "memory.types", Sentence: "Its memory is of another type.",
		Remedy: "Allow more memory types.",
		Param:  "memory_types", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.Memory.Types) },
		UnknownSQL: "s.memory_type IS NULL", HoldsSQL: "s.memory_type = ANY (q.memory_types)",
		Check: func(r *Requirements, f *Facts) Finding { return oneOf(r.Memory.Types, f.Server.Memory.Type) },
	},
	{
		Code: CodeDrives, Requirement: "drives", Sentence: "Its drives cannot serve every drive group at the same time.",
		Remedy: "Ask for fewer or smaller drives, or leave medium and interface open.",
		Param:  "drives", ParamType: "jsonb", Arg: func(r *Requirements) any { return list(r.Drives) },
		UnknownSQL: "s.drives IS NULL", HoldsSQL: "drives_fit(s.drives, q.drives)",
		Check: checkDrives,
	},
	{
		Code: CodeRAID, Requirement: "raid", Sentence: "It has another kind of RAID.", Remedy: "Leave the kind of RAID open.",
		Param: "raid", ParamType: "text", Arg: func(r *Requirements) any { return text(r.RAID) },
		UnknownSQL: "s.raid IS NULL", HoldsSQL: "s.raid = q.raid",
		Check: func(r *Requirements, f *Facts) Finding {
			return oneOf([]inventory.RAID{r.RAID}, f.Server.RAID)
		},
	},
	{
		Code: CodeGPU, Requirement: "gpu", Sentence: "It has too few GPUs of the models asked for.",
		Remedy: "Ask for fewer GPUs or allow more models.",
		Param:  "gpu", ParamType: "jsonb", Arg: func(r *Requirements) any { return pointer(r.GPU) },
		UnknownSQL: "s.gpus IS NULL",
		HoldsSQL: `(SELECT coalesce(sum((g ->> 'count')::bigint), 0) FROM jsonb_array_elements(s.gpus) g
			WHERE coalesce(q.gpu -> 'models', '[]') = '[]' OR q.gpu -> 'models' ? (g ->> 'model')) >= (q.gpu ->> 'count_min')::bigint`,
		Check: checkGPU,
	},
	{
		Code: CodeUplink, Requirement: "network.uplink_mbps_min", Sentence: "Its uplink is slower than asked for.",
		Remedy: "Ask for a slower uplink.",
		Param:  "uplink_mbps_min", ParamType: "bigint",
		Arg:        func(r *Requirements) any { return least(r.Network.UplinkMbpsMin) },
		UnknownSQL: "s.uplink_mbps IS NULL", HoldsSQL: "s.uplink_mbps >= q.uplink_mbps_min",
		Check: func(r *Requirements, f *Facts) Finding { return atLeast(r.Network.UplinkMbpsMin, f.Server.UplinkMbps) },
	},
	{
		Code: CodeCurrencyMismatch, Requirement: "price", Sentence: "Its price is in another currency.",
		Remedy: "Ask in the currency of the price list.",
		Param:  "price_currency", ParamType: "text", Arg: argCurrency,
		UnknownSQL: "s.price_amount IS NULL", HoldsSQL: "s.price_currency = q.price_currency",
		Check: checkCurrency,
	},
	{
		Code: CodePrice, Requirement: "price", Sentence: "It costs more than asked for.", Remedy: "Allow a higher price.",
		Param: "price_max", ParamType: "bigint", Arg: argPriceMax,
		// Without a price, or in another currency, the row above speaks and this one has nothing to compare.
		HoldsSQL: `s.price_amount IS NULL OR s.price_currency <> q.price_currency
			OR s.price_amount * 10000 <= q.price_max`,
		Check: checkPrice,
	},
	{
		Code: CodeTagMissing, Requirement: "tags_all", Sentence: "It lacks a tag that the order asks for.",
		Remedy: "Ask for fewer tags, or tag the server.",
		Param:  "tags_all", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.TagsAll) },
		HoldsSQL: "s.tags @> q.tags_all",
		Check: func(r *Requirements, f *Facts) Finding {
			return holds(!slices.ContainsFunc(r.TagsAll, func(t string) bool { return !slices.Contains(f.Server.Tags, t) }))
		},
	},
	{
		Code: CodeTagExcluded, Requirement: "tags_none", Sentence: "It has a tag that the order excludes.",
		Remedy: "Exclude fewer tags, or remove the tag from the server.",
		Param:  "tags_none", ParamType: "text[]", Arg: func(r *Requirements) any { return list(r.TagsNone) },
		HoldsSQL: "NOT s.tags && q.tags_none",
		Check: func(r *Requirements, f *Facts) Finding {
			return holds(!slices.ContainsFunc(r.TagsNone, func(t string) bool { return slices.Contains(f.Server.Tags, t) }))
		},
	},
	{
		Code: CodeAttribute, Requirement: "attributes", Sentence: "One of its attributes has another value.",
		Remedy: "Ask for fewer attributes, or correct the server's record.",
		Param:  "attributes", ParamType: "jsonb", Arg: argAttributes,
		// A known value that differs outweighs a missing one: it would still differ if the missing one were filled in.
		UnknownSQL: `NOT EXISTS (SELECT FROM jsonb_each(q.attributes) a
			WHERE s.attributes ? a.key AND s.attributes -> a.key <> a.value)
			AND EXISTS (SELECT FROM jsonb_object_keys(q.attributes) k WHERE NOT s.attributes ? k)`,
		HoldsSQL: "s.attributes @> q.attributes",
		Check:    checkAttributes,
	},
	stateRule(CodeStatePlanned, inventory.StatePlanned, "It is planned and not there yet.", "Wait until it is installed."),
	stateRule(CodeStateStaged, inventory.StateStaged, "It is being set up.", "Mark it ready when it has passed its tests."),
	stateRule(CodeStateCleaning, inventory.StateCleaning, "It is being cleaned after its last customer.",
		"Mark it ready when its drives are wiped."),
	stateRule(CodeStateMaintenance, inventory.StateMaintenance, "It is in maintenance.", "Mark it ready when the work is done."),
	stateRule(CodeStateFailed, inventory.StateFailed, "It is broken.", "Repair it and mark it ready."),
	stateRule(CodeStateRetired, inventory.StateRetired, "It is retired.", "Nothing: it is not for sale any more."),
	{
		Code: CodeHeld, Sentence: "It is held by another order.", Remedy: "Wait until that hold runs out or is given up.",
		HoldsSQL: "NOT o.held", Check: func(_ *Requirements, f *Facts) Finding { return holds(!f.Held) },
	},
	{
		Code: CodeBound, Sentence: "It is sold to a service.", Remedy: "Buy more hardware, or end that service.",
		HoldsSQL: "NOT o.bound", Check: func(_ *Requirements, f *Facts) Finding { return holds(!f.Bound) },
	},
}

// stateRule is the row of one state that cannot be reserved.
func stateRule(code Code, state inventory.State, sentence, remedy string) Rule {
	return Rule{
		Code: code, Sentence: sentence, Remedy: remedy, HoldsSQL: "s.state <> '" + string(state) + "'",
		Check: func(_ *Requirements, f *Facts) Finding { return holds(f.Server.State != state) },
	}
}

func holds(ok bool) Finding {
	if ok {
		return Holds
	}
	return Fails
}

// oneOf judges a text that must be one of several; the empty text is unknown.
func oneOf[T ~string](allowed []T, have T) Finding {
	if have == "" {
		return Unknown
	}
	return holds(slices.Contains(allowed, have))
}

// atLeast judges a number; zero is unknown.
func atLeast(wanted, have int64) Finding {
	if have == 0 {
		return Unknown
	}
	return holds(cmp.Compare(have, wanted) >= 0)
}
