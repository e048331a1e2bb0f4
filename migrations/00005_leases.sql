-- +goose Up

-- Edit leases: who edits what. A lease counts before expires_at; the row stays for a day, so that a heartbeat can keep what
-- nobody has taken. Times are whole seconds by the database's clock.
CREATE TABLE leases (
    organization_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
    resource        text COLLATE "C" NOT NULL,
    part            text COLLATE "C" NOT NULL DEFAULT '', -- '': the resource as a whole
    holder_id       text COLLATE "C" NOT NULL,
    holder_name     text NOT NULL,
    credential      text NOT NULL, -- the API key by which it was taken; '': the database itself
    acquired_at     timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    version         bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (organization_id, resource, part),
    CONSTRAINT leases_resource_has_1_to_255_bytes CHECK (octet_length(resource) BETWEEN 1 AND 255),
    CONSTRAINT leases_resource_has_no_control_characters CHECK (resource !~ '[[:cntrl:]]'),
    CONSTRAINT leases_part_is_a_short_name CHECK (part ~ '^[A-Za-z0-9_-]{0,64}$'),
    CONSTRAINT leases_holder_has_1_to_255_bytes CHECK (octet_length(holder_id) BETWEEN 1 AND 255),
    CONSTRAINT leases_times_are_whole_seconds CHECK (
        isfinite(acquired_at) AND isfinite(expires_at)
        AND acquired_at = date_trunc('second', acquired_at, 'UTC') AND expires_at = date_trunc('second', expires_at, 'UTC')),
    CONSTRAINT leases_version_is_positive CHECK (version > 0)
) WITH (fillfactor = 70); -- no index on times: a heartbeat rewrites a row in its page

-- A replacement that does not count the version up would make a compare-and-swap of somebody else succeed too late.
CREATE TRIGGER leases_version_grows BEFORE UPDATE ON leases FOR EACH ROW
    WHEN (NEW.version <= OLD.version OR (OLD.organization_id, OLD.resource, OLD.part) IS DISTINCT FROM (NEW.organization_id, NEW.resource, NEW.part))
    EXECUTE FUNCTION refuse('A lease keeps its key, and its version grows with every change. To end a lease delete its row.');

-- The row that claims on a resource take first, so that they run one after the other: without it two holders who ask for the
-- whole and for a part at the same instant would both get it. It says nothing by itself.
CREATE TABLE lease_resources (
    organization_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
    resource        text COLLATE "C" NOT NULL,
    claimed_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (organization_id, resource)
) WITH (fillfactor = 70);

-- Which servers stand in a leased rack or chassis.
CREATE INDEX servers_of_rack ON servers (organization_id, rack);
CREATE INDEX servers_of_chassis ON servers (organization_id, (attributes ->> 'chassis')) WHERE attributes ? 'chassis';
