package postgres

// ownedColumns are the columns of servers that a record's owner decides on. Source and external_id are the server's
// identity and a state has statements of its own: these are written only when a server begins.
const ownedColumns = `name, serial, site, rack, position, manufacturer, model,
	cpu_vendor, cpu_model, cpu_sockets, cpu_cores, cpu_threads, cpu_benchmarks,
	memory_mib, memory_ecc, memory_type, drives, raid, gpus, uplink_mbps, price_amount, price_currency, tags, attributes`

// recordValues are the values of ownedColumns in a record r.
const recordValues = `r.name, r.serial, r.site, r.rack, r.position, r.manufacturer, r.model,
	r.cpu_vendor, r.cpu_model, r.cpu_sockets, r.cpu_cores, r.cpu_threads, coalesce(r.cpu_benchmarks, '{}'),
	r.memory_mib, r.memory_ecc, r.memory_type, r.drives, r.raid, r.gpus, r.uplink_mbps, r.price_amount, r.price_currency,
	coalesce(r.tags, '{}'), coalesce(r.attributes, '{}')`

// recordShape is how the database reads a serverRecord.
const recordShape = `(id uuid, source text, external_id text, name text, serial text, site text, rack text, position text,
	manufacturer text, model text, cpu_vendor text, cpu_model text, cpu_sockets bigint, cpu_cores bigint,
	cpu_threads bigint, cpu_benchmarks jsonb, memory_mib bigint, memory_ecc boolean, memory_type text, drives jsonb,
	raid text, gpus jsonb, uplink_mbps bigint, price_amount numeric, price_currency text, tags text[], attributes jsonb,
	state text, state_reason text)`

// insertServers stores, in the order of the records, those whose source and external_id are not there yet. Many servers
// go in one statement, since each statement prepares the generated column anew, which takes longer than the row.
const insertServers = `
	INSERT INTO servers AS s (organization_id, id, source, external_id, state, state_reason, ` + ownedColumns + `)
	SELECT $1, r.id, r.source, r.external_id, r.state, r.state_reason, ` + recordValues + `
	FROM jsonb_to_recordset($2) AS r ` + recordShape + `
	ON CONFLICT ON CONSTRAINT servers_one_per_source DO NOTHING`

// updateServer gives a server its next version.
const updateServer = `
	UPDATE servers AS s
	SET (` + ownedColumns + `) = (SELECT ` + recordValues + ` FROM jsonb_to_record($3) AS r ` + recordShape + `),
		version = s.version + 1, updated_at = clock_timestamp()
	WHERE s.organization_id = $1 AND s.id = $2
	RETURNING ` + serverColumns
