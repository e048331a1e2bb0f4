-- +goose Up

-- Every function below is created with this search path pinned, with pg_temp last: a temporary table of the same name
-- in somebody's session must not stand in for a table that the rules look at.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- ---------------------------------------------------------------------------------------------------------------------
-- What the schema is, and which binaries it can serve. Binaries carry the number of their newest migration.
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TABLE schema_compatibility (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    oldest_binary bigint NOT NULL -- binaries with an older newest migration must not serve on this schema
);
INSERT INTO schema_compatibility (oldest_binary) VALUES (1);

-- ---------------------------------------------------------------------------------------------------------------------
-- Rules that are said in one sentence: a trigger whose WHEN clause finds a violation calls this function, which raises
-- the sentence under the trigger's own name.
-- ---------------------------------------------------------------------------------------------------------------------

-- +goose StatementBegin
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = TG_ARGV[0],
        CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME, SCHEMA = TG_TABLE_SCHEMA;
END $$;
-- +goose StatementEnd

-- ---------------------------------------------------------------------------------------------------------------------
-- Servers
-- ---------------------------------------------------------------------------------------------------------------------

-- The one static size by which servers that fit are ranked; inventory.Server.Size computes the same. It is computed
-- before constraints are checked, so what is no list is left to servers_lists_are_lists.
CREATE FUNCTION server_size(cores bigint, mib bigint, drives jsonb, gpus jsonb) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN 4096 * coalesce(cores, 0) + coalesce(mib, 0)
        + 8 * coalesce((SELECT sum((d ->> 'count')::bigint * (d ->> 'nominal_gb')::bigint)
                        FROM jsonb_array_elements(CASE jsonb_typeof(drives) WHEN 'array' THEN drives END) AS d), 0)::bigint
        + 262144 * coalesce((SELECT sum((g ->> 'count')::bigint) FROM jsonb_array_elements(CASE jsonb_typeof(gpus) WHEN 'array' THEN gpus END) AS g), 0)::bigint;

-- Whether every wanted group of drives can have its drives at the same time, no drive serving two groups. By Hall's
-- theorem that is so if, for every set of groups, the drives that fit at least one of them are enough for all of them.
-- It runs under a server's lock, and as one query it took fifteen times as long: most of that was setting the query up.
-- +goose StatementBegin
CREATE FUNCTION drives_fit(have jsonb, want jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    groups int := coalesce(jsonb_array_length(want), 0);
    drives int := coalesce(jsonb_array_length(have), 0);
    drive  jsonb;
    wanted jsonb;
    serves int[] := '{}'; -- of each drive, a bit for each group that it fits
    needed bigint;
    usable bigint;
BEGIN
    FOR d IN 0 .. drives - 1 LOOP
        drive := have -> d;
        serves[d] := 0;
        FOR g IN 0 .. groups - 1 LOOP
            wanted := want -> g;
            IF (drive ->> 'nominal_gb')::bigint >= coalesce((wanted ->> 'nominal_gb_min')::bigint, 0)
                AND coalesce(drive ->> 'medium' = wanted ->> 'medium', wanted ->> 'medium' IS NULL)
                AND coalesce(drive ->> 'interface' = wanted ->> 'interface', wanted ->> 'interface' IS NULL) THEN
                serves[d] := serves[d] | (1 << g);
            END IF;
        END LOOP;
    END LOOP;
    FOR subset IN 1 .. (1 << groups) - 1 LOOP
        needed := 0;
        usable := 0;
        FOR g IN 0 .. groups - 1 LOOP
            IF (subset >> g) & 1 = 1 THEN
                needed := needed + (want -> g ->> 'count_min')::bigint;
            END IF;
        END LOOP;
        FOR d IN 0 .. drives - 1 LOOP
            IF (serves[d] & subset) <> 0 THEN
                usable := usable + (have -> d ->> 'count')::bigint;
            END IF;
        END LOOP;
        IF usable < needed THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;
-- +goose StatementEnd

-- Every change of a server, a reservation or a binding carries the transaction that made it. A catalog in memory asks
-- for what was changed by transactions that were not over when it asked last; numbers of a sequence would not do, since
-- they are not in the order of commits. Nor would the default of the column: rows that are copied from a table kept
-- beside bring their old transaction along.
-- +goose StatementBegin
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.changed_by := pg_current_xact_id();
    NEW.version := greatest(NEW.version, OLD.version + 1); -- also when a person forgot it; of a new row there is no OLD
    RETURN NEW;
END $$;
-- +goose StatementEnd

CREATE TABLE servers (
    organization_id text COLLATE "C" NOT NULL,
    id              uuid NOT NULL,
    source          text NOT NULL,
    external_id     text NOT NULL,
    name            text,
    serial          text,
    site            text NOT NULL,
    rack            text,
    position        text,
    manufacturer    text,
    model           text,
    cpu_vendor      text,
    cpu_model       text,
    cpu_sockets     bigint,
    cpu_cores       bigint,
    cpu_threads     bigint,
    cpu_benchmarks  jsonb NOT NULL DEFAULT '{}',
    memory_mib      bigint,
    memory_ecc      boolean,
    memory_type     text,
    drives          jsonb, -- NULL: unknown; []: none
    raid            text,
    gpus            jsonb, -- NULL: unknown; []: none
    uplink_mbps     bigint,
    price_amount    numeric(16, 4),
    price_currency  text,
    tags            text[] NOT NULL DEFAULT '{}',
    attributes      jsonb NOT NULL DEFAULT '{}',
    size            bigint GENERATED ALWAYS AS (server_size(cpu_cores, memory_mib, drives, gpus)) STORED,
    state           text NOT NULL,
    state_reason    text,
    version         bigint NOT NULL DEFAULT 1,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by      xid8 NOT NULL DEFAULT pg_current_xact_id(),
    v               smallint NOT NULL GENERATED ALWAYS AS (1) STORED, -- the shape in which it is frozen
    CONSTRAINT servers_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT servers_one_per_source UNIQUE (organization_id, source, external_id),
    CONSTRAINT servers_state_known CHECK
        (state IN ('planned', 'staged', 'ready', 'cleaning', 'maintenance', 'failed', 'retired')),
    CONSTRAINT servers_raid_known CHECK (raid IN ('none', 'software', 'hardware')),
    CONSTRAINT servers_site_named CHECK (site <> ''),
    CONSTRAINT servers_unknown_is_null CHECK (
        '' <> ALL (ARRAY [name, serial, rack, position, manufacturer, model, cpu_vendor, cpu_model, memory_type, raid])),
    CONSTRAINT servers_counts_positive CHECK
        (cpu_sockets > 0 AND cpu_cores > 0 AND cpu_threads > 0 AND memory_mib > 0 AND uplink_mbps > 0),
    CONSTRAINT servers_lists_are_lists CHECK
        (jsonb_typeof(drives) = 'array' AND jsonb_typeof(gpus) = 'array'),
    CONSTRAINT servers_maps_are_maps CHECK
        (jsonb_typeof(cpu_benchmarks) = 'object' AND jsonb_typeof(attributes) = 'object'),
    CONSTRAINT servers_values_are_readable CHECK (
        price_amount <> 'NaN' AND isfinite(created_at) AND isfinite(updated_at) AND array_position(tags, NULL) IS NULL
        AND NOT jsonb_path_exists(cpu_benchmarks, '$.* ? (@.type() <> "number")')
        AND NOT jsonb_path_exists(attributes, '$.* ? (@.type() <> "string")')
        AND NOT jsonb_path_exists(drives, '$[*] ? (@.type() <> "object")')
        AND NOT jsonb_path_exists(gpus, '$[*] ? (@.type() <> "object")')),
    CONSTRAINT servers_price_complete CHECK
        ((price_amount IS NULL) = (price_currency IS NULL) AND price_amount >= 0)
);

-- A server as it is frozen on a reservation or a binding: its row, without what is unknown. Naming each column took more
-- time than everything else that is read for a reservation. Frozen servers are kept for months and read by later versions
-- of the program: a migration that changes what a column means raises "v".
CREATE FUNCTION freeze_server(s servers) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE
    RETURN jsonb_strip_nulls(to_jsonb(s));

CREATE INDEX servers_changed ON servers (changed_by);
CREATE TRIGGER servers_note_change BEFORE INSERT OR UPDATE ON servers FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TRIGGER servers_are_kept BEFORE DELETE ON servers FOR EACH ROW
    EXECUTE FUNCTION refuse('A server is never deleted, since old reservations and bindings speak of it: retire it instead.');
CREATE TRIGGER servers_are_kept_all BEFORE TRUNCATE ON servers FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('Servers are never deleted, since old reservations and bindings speak of them: retire them instead.');
CREATE TRIGGER servers_identity_fixed BEFORE UPDATE OF organization_id, id ON servers FOR EACH ROW
    WHEN ((OLD.organization_id, OLD.id) IS DISTINCT FROM (NEW.organization_id, NEW.id))
    EXECUTE FUNCTION refuse('A server keeps its id and its organization for ever.');

-- ---------------------------------------------------------------------------------------------------------------------
-- Reservations
-- ---------------------------------------------------------------------------------------------------------------------

-- Which states keep a server from others. The index reservations_one_held_per_server and reservation.State.Holds say
-- the same; a test compares all three.
CREATE TABLE reservation_states (
    state        text PRIMARY KEY,
    holds_server boolean NOT NULL
);
INSERT INTO reservation_states VALUES ('held', true), ('converted', false), ('expired', false), ('cancelled', false);

-- The fence of every reservation and take-over. CACHE 1, so that under a server's row lock numbers are drawn in the
-- order of commits.
-- Not beyond what a double holds exactly: answers are JSON, and most of its readers have no other numbers.
CREATE SEQUENCE reservation_fence AS bigint MAXVALUE 9007199254740991 CACHE 1;

CREATE TABLE reservations (
    organization_id text COLLATE "C" NOT NULL,
    id              uuid NOT NULL,
    server_id       uuid NOT NULL,
    order_id        text NOT NULL,
    order_line      text NOT NULL,
    unit            bigint NOT NULL DEFAULT 1,
    customer_ref    text,
    state           text NOT NULL DEFAULT 'held',
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by_kind text NOT NULL,
    created_by      text,
    expires_at      timestamptz NOT NULL,
    max_expires_at  timestamptz NOT NULL,
    ended_at        timestamptz,
    ended_by_kind   text,
    ended_by        text,
    end_reason      text,
    end_text        text,
    fence           bigint NOT NULL DEFAULT nextval('reservation_fence'),
    generation      bigint NOT NULL DEFAULT 1,
    version         bigint NOT NULL DEFAULT 1,
    idempotency_key text NOT NULL,
    fingerprint     bytea NOT NULL,
    token_key       text NOT NULL,
    requirements    json NOT NULL, -- never looked into here, so kept as it was written; likewise the next
    reason          json NOT NULL,
    server          jsonb NOT NULL, -- price and specification as they were
    decision_id     uuid NOT NULL,
    changed_by      xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT reservations_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT reservations_state_known CHECK (state IN ('held', 'converted', 'expired', 'cancelled')),
    CONSTRAINT reservations_final_is_complete CHECK
        ((state = 'held') = (ended_at IS NULL) AND (state = 'held') = (ended_by_kind IS NULL)),
    CONSTRAINT reservations_sweep_only_expires CHECK (ended_by_kind <> 'sweep' OR state = 'expired'),
    CONSTRAINT reservations_unit_positive CHECK (unit > 0),
    CONSTRAINT reservations_values_are_readable CHECK (
        isfinite(created_at) AND isfinite(expires_at) AND isfinite(max_expires_at) AND isfinite(ended_at)
        AND server ->> 'v' IS NOT NULL),
    CONSTRAINT reservations_deadline_in_bounds CHECK (expires_at <= max_expires_at)
);

-- The arbiter: whoever inserts second loses, whatever any code believed. It is created before the unique key below,
-- since PostgreSQL reports the first violated index only.
CREATE UNIQUE INDEX reservations_one_held_per_server ON reservations (organization_id, server_id) WHERE state = 'held';
CREATE UNIQUE INDEX reservations_one_per_key ON reservations (organization_id, idempotency_key);

CREATE INDEX reservations_due ON reservations (expires_at, organization_id, id) WHERE state = 'held'; -- the sweep
CREATE INDEX reservations_of_order ON reservations (organization_id, order_id, id);
CREATE INDEX reservations_of_server ON reservations (organization_id, server_id, id);
-- Held is said in other words here, so that the statement that counts a customer's holds can use no other index.
CREATE INDEX reservations_open_of_customer ON reservations (customer_ref, organization_id) WHERE ended_at IS NULL AND customer_ref IS NOT NULL;

CREATE INDEX reservations_changed ON reservations (changed_by); -- the catalogs in memory

CREATE TRIGGER reservations_note_change BEFORE INSERT OR UPDATE ON reservations FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TRIGGER reservations_start_held BEFORE INSERT ON reservations FOR EACH ROW WHEN (NEW.state <> 'held')
    EXECUTE FUNCTION refuse('A reservation begins as held.');
-- Which columns a rule looks at is said twice, so that statements that leave them alone need not read its condition:
-- PostgreSQL parses it once for each statement, and these together took a quarter of a sale's time.
CREATE TRIGGER reservations_identity_fixed
    BEFORE UPDATE OF organization_id, id, server_id, order_id, order_line, unit, idempotency_key, created_at ON reservations FOR EACH ROW
    WHEN ((OLD.organization_id, OLD.id, OLD.server_id, OLD.order_id, OLD.order_line, OLD.unit, OLD.idempotency_key, OLD.created_at)
        IS DISTINCT FROM
          (NEW.organization_id, NEW.id, NEW.server_id, NEW.order_id, NEW.order_line, NEW.unit, NEW.idempotency_key, NEW.created_at))
    EXECUTE FUNCTION refuse('A reservation keeps its organization, server, order line, unit and key: make a new one instead.');
CREATE TRIGGER reservations_reason_frozen
    BEFORE UPDATE OF reason, requirements, server, decision_id, fingerprint ON reservations FOR EACH ROW
    WHEN ((OLD.reason::text, OLD.requirements::text, OLD.server, OLD.decision_id, OLD.fingerprint)
        IS DISTINCT FROM (NEW.reason::text, NEW.requirements::text, NEW.server, NEW.decision_id, NEW.fingerprint))
    EXECUTE FUNCTION refuse('What was asked, what was chosen and why are frozen on a reservation and never change.');
CREATE TRIGGER reservations_final_is_final
    BEFORE UPDATE OF state, ended_at, ended_by_kind, ended_by, expires_at ON reservations FOR EACH ROW
    WHEN (OLD.state <> 'held' AND (OLD.state, OLD.ended_at, OLD.ended_by_kind, OLD.ended_by, OLD.expires_at)
        IS DISTINCT FROM (NEW.state, NEW.ended_at, NEW.ended_by_kind, NEW.ended_by, NEW.expires_at))
    EXECUTE FUNCTION refuse('A reservation leaves the state held once; converted, expired and cancelled are final.');
CREATE TRIGGER reservations_fence_grows BEFORE UPDATE OF fence, generation ON reservations FOR EACH ROW
    WHEN (NEW.fence < OLD.fence OR NEW.generation < OLD.generation)
    EXECUTE FUNCTION refuse('The fence and the generation of a reservation only grow.');
CREATE TRIGGER reservations_held_are_kept BEFORE DELETE ON reservations FOR EACH ROW WHEN (OLD.state = 'held')
    EXECUTE FUNCTION refuse('A held reservation is not deleted: cancel it first.');
CREATE TRIGGER reservations_are_kept BEFORE TRUNCATE ON reservations FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('Reservations are not truncated: some may hold servers.');

-- ---------------------------------------------------------------------------------------------------------------------
-- Service bindings
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TABLE bindings (
    organization_id text COLLATE "C" NOT NULL,
    id              uuid NOT NULL,
    server_id       uuid NOT NULL,
    service_id      text NOT NULL,
    reservation_id  uuid, -- NULL: sold before Allocator came
    order_id        text,
    order_line      text,
    unit            bigint,
    since           timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by_kind text NOT NULL,
    created_by      text,
    reason          text,
    decided_at      timestamptz, -- the clock by which the reservation was still alive, read after it was locked
    hold_expires_at timestamptz, -- its deadline then
    server          jsonb NOT NULL,
    ended_at        timestamptz,
    ended_by_kind   text,
    ended_by        text,
    end_reason      text,
    delivery_failed boolean NOT NULL DEFAULT false,
    version         bigint NOT NULL DEFAULT 1,
    fence           bigint NOT NULL DEFAULT nextval('reservation_fence'), -- its reservation's, or a new one
    changed_by      xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT bindings_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT bindings_decided_in_time CHECK (decided_at < hold_expires_at),
    CONSTRAINT bindings_values_are_readable CHECK (
        isfinite(since) AND isfinite(created_at) AND isfinite(ended_at) AND isfinite(decided_at) AND isfinite(hold_expires_at)
        AND server ->> 'v' IS NOT NULL),
    CONSTRAINT bindings_conversion_complete CHECK (
        num_nulls(reservation_id, order_id, order_line, unit, decided_at, hold_expires_at) IN (0, 6)),
    CONSTRAINT bindings_end_complete CHECK ((ended_at IS NULL) = (ended_by_kind IS NULL))
);

CREATE UNIQUE INDEX bindings_one_active_per_server ON bindings (organization_id, server_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX bindings_one_active_per_service ON bindings (organization_id, service_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX bindings_one_per_reservation ON bindings (organization_id, reservation_id);
CREATE INDEX bindings_of_order ON bindings (organization_id, order_id, id);
CREATE INDEX bindings_of_server ON bindings (organization_id, server_id, id);
CREATE INDEX bindings_of_service ON bindings (organization_id, service_id, id);

CREATE INDEX bindings_changed ON bindings (changed_by); -- the catalogs in memory

CREATE TRIGGER bindings_note_change BEFORE INSERT OR UPDATE ON bindings FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TRIGGER bindings_start_active BEFORE INSERT ON bindings FOR EACH ROW WHEN (NEW.ended_at IS NOT NULL)
    EXECUTE FUNCTION refuse('A binding begins active.');
CREATE TRIGGER bindings_identity_fixed
    BEFORE UPDATE OF organization_id, id, server_id, service_id, reservation_id, order_id, order_line, unit, decided_at,
        hold_expires_at, server, fence ON bindings FOR EACH ROW
    WHEN ((OLD.organization_id, OLD.id, OLD.server_id, OLD.service_id, OLD.reservation_id, OLD.order_id, OLD.order_line,
           OLD.unit, OLD.decided_at, OLD.hold_expires_at, OLD.server, OLD.fence)
        IS DISTINCT FROM
          (NEW.organization_id, NEW.id, NEW.server_id, NEW.service_id, NEW.reservation_id, NEW.order_id, NEW.order_line,
           NEW.unit, NEW.decided_at, NEW.hold_expires_at, NEW.server, NEW.fence))
    EXECUTE FUNCTION refuse('A binding keeps its server, service, reservation and order line: end it and make a new one.');
CREATE TRIGGER bindings_end_once BEFORE UPDATE OF ended_at, ended_by_kind, ended_by ON bindings FOR EACH ROW
    WHEN (OLD.ended_at IS NOT NULL AND (OLD.ended_at, OLD.ended_by_kind, OLD.ended_by)
        IS DISTINCT FROM (NEW.ended_at, NEW.ended_by_kind, NEW.ended_by))
    EXECUTE FUNCTION refuse('An ended binding is not opened again: its server may be sold to somebody else.');
CREATE TRIGGER bindings_active_are_kept BEFORE DELETE ON bindings FOR EACH ROW WHEN (OLD.ended_at IS NULL)
    EXECUTE FUNCTION refuse('An active binding is not deleted: end it first.');
CREATE TRIGGER bindings_are_kept BEFORE TRUNCATE ON bindings FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('Bindings are not truncated: some are active.');

-- ---------------------------------------------------------------------------------------------------------------------
-- Occupancy: one row per server that is held or bound. Two unique indexes on two tables cannot exclude each other, in
-- whatever order or isolation level; one row can. Only the triggers of reservations and bindings write it.
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TABLE occupancy (
    organization_id text COLLATE "C" NOT NULL,
    server_id       uuid NOT NULL,
    order_id        text,
    order_line      text,
    unit            bigint,
    reservation_id  uuid,
    binding_id      uuid,
    CONSTRAINT occupancy_one_per_server PRIMARY KEY (organization_id, server_id),
    CONSTRAINT occupancy_one_per_order_line UNIQUE (organization_id, order_id, order_line, unit),
    CONSTRAINT occupancy_one_owner CHECK (num_nonnulls(reservation_id, binding_id) = 1)
);

CREATE TRIGGER occupancy_by_triggers_only BEFORE INSERT OR UPDATE OR DELETE ON occupancy FOR EACH ROW
    WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION refuse('Occupancy follows reservations and bindings by itself: change those instead.');
CREATE TRIGGER occupancy_is_kept BEFORE TRUNCATE ON occupancy FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('Occupancy is not truncated: it keeps servers from being sold twice.');

-- The triggers on reservations and bindings are AFTER ROW: a BEFORE trigger would leave an occupancy row behind when
-- the row itself is refused, and that server would never be sold again.

-- +goose StatementBegin
CREATE FUNCTION reservation_occupies() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM servers WHERE organization_id = NEW.organization_id AND id = NEW.server_id) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
            MESSAGE = 'A reservation holds a server of its own organization; there is none with this id.';
    END IF;
    INSERT INTO occupancy (organization_id, server_id, order_id, order_line, unit, reservation_id)
    VALUES (NEW.organization_id, NEW.server_id, NEW.order_id, NEW.order_line, NEW.unit, NEW.id);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reservations_occupy AFTER INSERT ON reservations FOR EACH ROW EXECUTE FUNCTION reservation_occupies();

-- +goose StatementBegin
CREATE FUNCTION reservation_vacates() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM occupancy
    WHERE organization_id = OLD.organization_id AND server_id = OLD.server_id AND reservation_id = OLD.id;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
            MESSAGE = 'The reservation does not hold its server any more: a binding has it.';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reservations_vacate AFTER UPDATE OF state ON reservations FOR EACH ROW
    WHEN (OLD.state = 'held' AND NEW.state IN ('expired', 'cancelled'))
    EXECUTE FUNCTION reservation_vacates();

-- +goose StatementBegin
CREATE FUNCTION reservation_has_binding() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM bindings WHERE organization_id = NEW.organization_id AND reservation_id = NEW.id
                   AND server_id = NEW.server_id)
       OR EXISTS (SELECT FROM occupancy WHERE organization_id = NEW.organization_id AND server_id = NEW.server_id
                 AND reservation_id = NEW.id) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
            MESSAGE = 'A converted reservation has a binding of its server, written in the same transaction.';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- A sold server's reservation says to whom and why, and its key and order line go on being answered; so it is kept as
-- long as the binding is active, and the binding as long as the reservation stands.
-- +goose StatementBegin
CREATE FUNCTION still_bound() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM bindings WHERE organization_id = OLD.organization_id AND reservation_id = OLD.id AND ended_at IS NULL) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
            MESSAGE = 'A reservation whose binding is active is not deleted: end the binding first.';
    END IF;
    RETURN OLD;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reservations_sold_are_kept BEFORE DELETE ON reservations FOR EACH ROW WHEN (OLD.state = 'converted')
    EXECUTE FUNCTION still_bound();

-- +goose StatementBegin
CREATE FUNCTION still_converted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM reservations WHERE organization_id = OLD.organization_id AND id = OLD.reservation_id) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
            MESSAGE = 'A binding whose reservation stands is not deleted: the reservation says that it was converted.';
    END IF;
    RETURN OLD;
END $$;
-- +goose StatementEnd
CREATE TRIGGER bindings_of_reservations_are_kept BEFORE DELETE ON bindings FOR EACH ROW WHEN (OLD.reservation_id IS NOT NULL)
    EXECUTE FUNCTION still_converted();
CREATE CONSTRAINT TRIGGER reservations_converted_has_binding AFTER UPDATE OF state ON reservations
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.state = 'held' AND NEW.state = 'converted')
    EXECUTE FUNCTION reservation_has_binding();

-- A conversion moves the occupancy row in place, so that at no instant the server is free. The reservation row is
-- locked first: a cancellation or an expiry that is under way is waited for, and then there is nothing to move.
-- +goose StatementBegin
CREATE FUNCTION binding_occupies() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.reservation_id IS NULL THEN
        IF NOT EXISTS (SELECT FROM servers WHERE organization_id = NEW.organization_id AND id = NEW.server_id) THEN
            RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
                MESSAGE = 'A binding sells a server of its own organization; there is none with this id.';
        END IF;
        INSERT INTO occupancy (organization_id, server_id, binding_id)
        VALUES (NEW.organization_id, NEW.server_id, NEW.id);
        RETURN NULL;
    END IF;
    PERFORM FROM reservations WHERE organization_id = NEW.organization_id AND id = NEW.reservation_id FOR UPDATE;
    IF EXISTS (SELECT FROM reservations WHERE organization_id = NEW.organization_id AND id = NEW.reservation_id
               AND expires_at <= clock_timestamp()) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'bindings_decided_in_time', TABLE = TG_TABLE_NAME,
            MESSAGE = 'A reservation past its deadline is not converted, whatever its binding says the deadline was.';
    END IF;
    UPDATE occupancy SET reservation_id = NULL, binding_id = NEW.id
    WHERE organization_id = NEW.organization_id AND server_id = NEW.server_id AND reservation_id = NEW.reservation_id
        AND (order_id, order_line, unit) = (NEW.order_id, NEW.order_line, NEW.unit);
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
            MESSAGE = 'A binding takes over the server and the order line that its reservation holds; this one holds them no more.';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER bindings_occupy AFTER INSERT ON bindings FOR EACH ROW EXECUTE FUNCTION binding_occupies();

-- +goose StatementBegin
CREATE FUNCTION binding_vacates() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM occupancy
    WHERE organization_id = OLD.organization_id AND server_id = OLD.server_id AND binding_id = OLD.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER bindings_vacate AFTER UPDATE OF ended_at ON bindings FOR EACH ROW
    WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION binding_vacates();

-- +goose StatementBegin
CREATE FUNCTION binding_has_converted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM reservations WHERE organization_id = NEW.organization_id AND id = NEW.reservation_id
                   AND state = 'converted') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
            MESSAGE = 'The reservation of a binding is converted in the same transaction.';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER bindings_reservation_converted AFTER INSERT ON bindings
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.reservation_id IS NOT NULL)
    EXECUTE FUNCTION binding_has_converted();

-- ---------------------------------------------------------------------------------------------------------------------
-- Events and decisions, by month. Their ids are UUIDv7, so a month is a range of ids.
-- ---------------------------------------------------------------------------------------------------------------------

-- A fresh UUIDv7: the time in milliseconds, then what gen_random_uuid() has behind its own version digit.
CREATE FUNCTION uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN (lpad(to_hex(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
        || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid;

-- The smallest UUIDv7 of an instant.
CREATE FUNCTION uuid_v7_floor(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

CREATE TABLE events (
    organization_id text COLLATE "C" NOT NULL,
    id              uuid NOT NULL,
    type            text NOT NULL,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor_kind      text NOT NULL,
    actor_id        text,
    reservation_id  uuid,
    binding_id      uuid,
    server_id       uuid,
    order_id        text,
    decision_id     uuid,
    data            jsonb NOT NULL DEFAULT '{}',
    written_by      xid8 NOT NULL DEFAULT pg_current_xact_id(), -- readers stay below the oldest running transaction
    CONSTRAINT events_pkey PRIMARY KEY (organization_id, id)
) PARTITION BY RANGE (id);
CREATE TABLE events_default PARTITION OF events DEFAULT;
CREATE INDEX events_of_order ON events (organization_id, order_id, id);
CREATE TRIGGER events_are_kept BEFORE TRUNCATE ON events FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('Events are not truncated; whole months are dropped when they are old.');
CREATE TRIGGER events_are_final BEFORE UPDATE OR DELETE ON events FOR EACH ROW
    EXECUTE FUNCTION refuse('An event is written once and stays as it is; whole months are dropped when they are old.');

-- Written once and never recomputed. No personal data: the customer stands on the reservation, where it can be erased. A
-- decision is its own event, which event_feed reads from it: a second row would be a tenth of what a reservation costs.
CREATE TABLE decisions (
    organization_id text COLLATE "C" NOT NULL,
    id              uuid NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    order_id        text NOT NULL,
    order_line      text NOT NULL,
    unit            bigint NOT NULL,
    outcome         text NOT NULL,
    cause           text,
    reservation_id  uuid,        -- the one made, or the one in the way
    server_id       uuid,        -- of the one made, as are its fence and deadline
    fence           bigint,
    expires_at      timestamptz,
    by_kind         text NOT NULL,
    by_id           text,
    body            json NOT NULL,
    roster_hash     bytea, -- which servers were looked at, and of which kinds
    reasons_hash    bytea, -- what spoke against each kind
    base_hash       bytea, -- in which status each server was a moment before; NULL: statuses has it all
    statuses        bytea, -- what changed since: place, symbol, place, symbol …; without a base symbol, length, symbol, length …
    sampled         boolean NOT NULL DEFAULT false,
    written_by      xid8 NOT NULL DEFAULT pg_current_xact_id(), -- as of events
    CONSTRAINT decisions_pkey PRIMARY KEY (organization_id, id)
) PARTITION BY RANGE (id);
CREATE TABLE decisions_default PARTITION OF decisions DEFAULT;
CREATE INDEX decisions_of_order ON decisions (organization_id, order_id, id);
CREATE TRIGGER decisions_are_kept BEFORE TRUNCATE ON decisions FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('Decisions are not truncated; whole months are dropped when they are old.');
CREATE TRIGGER decisions_are_final BEFORE UPDATE OR DELETE ON decisions FOR EACH ROW
    EXECUTE FUNCTION refuse('A decision is written once and stays as it is; whole months are dropped when they are old.');

-- Every event: those that were written, and those that decisions are. With the switch off nothing happened.
CREATE VIEW event_feed AS
    SELECT organization_id, id, type, at, actor_kind, actor_id, reservation_id, binding_id, server_id, order_id, decision_id,
        data, written_by
    FROM events
    UNION ALL
    SELECT organization_id, id, 'reservation.held', created_at, by_kind, by_id, reservation_id, NULL, server_id, order_id, id,
        jsonb_build_object('fence', fence, 'expires_at', expires_at), written_by
    FROM decisions WHERE outcome = 'reserved'
    UNION ALL
    SELECT organization_id, id, 'order.refused', created_at, by_kind, by_id, NULL, NULL, NULL, order_id, id,
        jsonb_build_object('outcome', outcome, 'cause', cause), written_by
    FROM decisions WHERE outcome NOT IN ('reserved', 'feature_disabled');

-- The lists that decisions froze, each distinct one once. Not unique on purpose: a unique index would make one request
-- wait for another that writes the same list; two that race leave two equal rows, which harms nobody.
CREATE TABLE decision_lists (
    organization_id text COLLATE "C" NOT NULL,
    id              uuid NOT NULL,
    hash            bytea NOT NULL,
    body            bytea NOT NULL,
    CONSTRAINT decision_lists_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT decision_lists_hash_is_of_body CHECK (hash = sha256(body)) -- nothing else can take a frozen list's place
) PARTITION BY RANGE (id);
CREATE TABLE decision_lists_default PARTITION OF decision_lists DEFAULT;
CREATE INDEX decision_lists_by_hash ON decision_lists (organization_id, hash);
CREATE TRIGGER decision_lists_are_kept BEFORE TRUNCATE ON decision_lists FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('Frozen lists are not truncated; whole months are dropped when they are old.');
CREATE TRIGGER decision_lists_are_final BEFORE UPDATE OR DELETE ON decision_lists FOR EACH ROW
    EXECUTE FUNCTION refuse('A frozen list is written once and stays as it is; whole months are dropped when they are old.');

-- Makes the partitions of the current month and of the given number of months after it, where they are missing, for
-- every table kept by month. Returns how many it made. Months are those of UTC, whatever the time zone of who asks. Of
-- several that find the same one missing, one makes it, and the others wait for that.
-- +goose StatementBegin
CREATE FUNCTION make_month_partitions(months_ahead int) RETURNS int LANGUAGE plpgsql SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
    parent text;
    month  timestamptz;
    made   int := 0;
BEGIN
    FOREACH parent IN ARRAY ARRAY ['events', 'decisions', 'decision_lists'] LOOP
        FOR ahead IN 0..months_ahead LOOP
            month := date_trunc('month', clock_timestamp()) + make_interval(months => ahead);
            CONTINUE WHEN to_regclass(format('%I', parent || to_char(month, '_YYYY_MM'))) IS NOT NULL;
            EXECUTE format('LOCK TABLE %I IN SHARE UPDATE EXCLUSIVE MODE', parent);
            IF to_regclass(format('%I', parent || to_char(month, '_YYYY_MM'))) IS NULL THEN
                EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
                    parent || to_char(month, '_YYYY_MM'), parent,
                    uuid_v7_floor(month), uuid_v7_floor(month + interval '1 month'));
                made := made + 1;
            END IF;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;
-- +goose StatementEnd

-- How long decisions, their frozen lists and events are kept at least. Whole months are dropped when all of them is older.
CREATE FUNCTION decision_retention() RETURNS interval IMMUTABLE LANGUAGE sql RETURN interval '400 days';

-- Drops the months that are older than decision_retention(), and returns how many partitions that were. Frozen lists stay a
-- month longer: about the turn of a month a decision may refer to a list of the month before. Each drop needs its parent
-- table for itself for a moment; it waits no longer than requests can, and the next run tries again.
-- +goose StatementBegin
CREATE FUNCTION drop_old_months() RETURNS int LANGUAGE plpgsql SET search_path FROM CURRENT SET timezone = 'UTC'
    SET lock_timeout = '200ms' AS $$
DECLARE
    old     record;
    dropped int := 0;
BEGIN
    FOR old IN
        SELECT c.oid::regclass AS partition
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        JOIN (VALUES ('events'::regclass, 1), ('decisions', 1), ('decision_lists', 2)) t (parent, months) ON t.parent = i.inhparent
        WHERE c.relname ~ '_[0-9]{4}_[0-9]{2}$'
            AND to_date(right(c.relname, 7), 'YYYY_MM') + make_interval(months => t.months)
                <= clock_timestamp() - decision_retention()
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE %s', old.partition);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$;
-- +goose StatementEnd
SELECT make_month_partitions(3);
