-- +goose Up

-- The hosting companies. The allocator reads hold_seconds, hold_limit and closing; the shortest hold time of a minute
-- is a rule of the service, which demos and tests lower.
CREATE TABLE organizations (
    id           text COLLATE "C" PRIMARY KEY,
    name         text NOT NULL,
    hold_seconds integer NOT NULL DEFAULT 900,
    hold_limit   integer NOT NULL DEFAULT 10,
    closing      boolean NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    version      bigint NOT NULL DEFAULT 1,
    CONSTRAINT organizations_id_is_a_short_name CHECK (id ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    CONSTRAINT organizations_name_has_1_to_200_characters CHECK (char_length(name) BETWEEN 1 AND 200),
    CONSTRAINT organizations_hold_seconds_within_a_day CHECK (hold_seconds BETWEEN 1 AND 86400),
    CONSTRAINT organizations_hold_limit_is_positive CHECK (hold_limit BETWEEN 1 AND 10000)
);

CREATE TRIGGER organizations_are_kept BEFORE DELETE ON organizations FOR EACH ROW
    EXECUTE FUNCTION refuse('Organizations are never deleted: decisions and the audit trail name them, and nobody else may come to own their id. Set closing instead.');
CREATE TRIGGER organizations_are_kept_all BEFORE TRUNCATE ON organizations FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('Organizations are never deleted, so they are not truncated either.');
CREATE TRIGGER organizations_identity_fixed BEFORE UPDATE ON organizations FOR EACH ROW WHEN (NEW.id <> OLD.id)
    EXECUTE FUNCTION refuse('The id of an organization never changes.');

-- API keys. secret_hash is the SHA-256 of 256 random bits; the secret itself is nowhere.
CREATE TABLE api_keys (
    organization_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
    id              uuid NOT NULL,
    name            text NOT NULL,
    scopes          text[] NOT NULL,
    secret_hash     bytea NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by_kind text NOT NULL,
    created_by_id   text NOT NULL,
    expires_at      timestamptz,
    last_used_at    timestamptz,
    revoked_at      timestamptz,
    revoked_by_kind text,
    revoked_by_id   text,
    PRIMARY KEY (organization_id, id),
    CONSTRAINT api_keys_name_has_1_to_100_characters CHECK (char_length(name) BETWEEN 1 AND 100),
    CONSTRAINT api_keys_scopes_exist CHECK (
        cardinality(scopes) > 0
        AND scopes <@ ARRAY['checkout', 'orders', 'support', 'operator', 'admin', 'platform']
    ),
    CONSTRAINT api_keys_secret_hash_is_a_sha256 CHECK (octet_length(secret_hash) = 32),
    CONSTRAINT api_keys_revocation_says_when_and_who CHECK (
        (revoked_at IS NULL) = (revoked_by_kind IS NULL) AND (revoked_at IS NULL) = (revoked_by_id IS NULL)
    )
);

-- One of the exceptions to keys that lead with the organization: whoever sends a key has yet to be told apart by it.
CREATE UNIQUE INDEX api_keys_id ON api_keys (id);

CREATE TRIGGER api_keys_revocation_final BEFORE UPDATE ON api_keys FOR EACH ROW
    WHEN (OLD.revoked_at IS NOT NULL AND (NEW.revoked_at, NEW.revoked_by_kind, NEW.revoked_by_id)
        IS DISTINCT FROM (OLD.revoked_at, OLD.revoked_by_kind, OLD.revoked_by_id))
    EXECUTE FUNCTION refuse('A revoked key stays revoked: make a new one.');
CREATE TRIGGER api_keys_rights_fixed BEFORE UPDATE ON api_keys FOR EACH ROW
    WHEN ((NEW.organization_id, NEW.id, NEW.scopes, NEW.secret_hash, NEW.created_at, NEW.created_by_kind, NEW.created_by_id, NEW.expires_at)
        IS DISTINCT FROM (OLD.organization_id, OLD.id, OLD.scopes, OLD.secret_hash, OLD.created_at, OLD.created_by_kind, OLD.created_by_id, OLD.expires_at))
    EXECUTE FUNCTION refuse('What a key may do, and for how long, never changes: make a new one and revoke this one.');

-- The global value of each release switch. No row: off. Global, so no organization leads its key.
CREATE TABLE flags (
    key             text COLLATE "C" PRIMARY KEY,
    percent         integer NOT NULL,
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_by_kind text NOT NULL,
    updated_by_id   text NOT NULL,
    CONSTRAINT flags_key_is_a_short_name CHECK (key ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    CONSTRAINT flags_percent_lies_between_0_and_100 CHECK (percent BETWEEN 0 AND 100)
);

-- An organization's own value, which wins over the global one.
CREATE TABLE flag_overrides (
    organization_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
    key             text COLLATE "C" NOT NULL,
    enabled         boolean NOT NULL,
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_by_kind text NOT NULL,
    updated_by_id   text NOT NULL,
    PRIMARY KEY (organization_id, key),
    CONSTRAINT flag_overrides_key_is_a_short_name CHECK (key ~ '^[a-z][a-z0-9_.-]{0,62}$')
);

-- Who did what. organization_id '' is the platform's own trail, so there is no foreign key.
CREATE TABLE audit (
    organization_id text COLLATE "C" NOT NULL,
    id              uuid NOT NULL,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor_kind      text NOT NULL,
    actor_id        text NOT NULL,
    action          text NOT NULL,
    subject         text NOT NULL,
    outcome         text NOT NULL,
    request_id      text NOT NULL,
    detail          jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (organization_id, id),
    CONSTRAINT audit_outcome_is_done_or_refused CHECK (outcome IN ('done', 'refused')),
    CONSTRAINT audit_texts_have_at_most_200_characters CHECK (
        char_length(organization_id) <= 200 AND char_length(actor_kind) <= 200 AND char_length(actor_id) <= 200
        AND char_length(action) <= 200 AND char_length(subject) <= 200 AND char_length(request_id) <= 200
    ),
    CONSTRAINT audit_detail_is_a_small_object CHECK (
        jsonb_typeof(detail) = 'object' AND octet_length(detail::text) <= 65536
    )
);

-- A page of one trail, a page of all trails with the end of retention, and the shorter retention of refused attempts.
CREATE INDEX audit_by_organization_and_time ON audit (organization_id, at, id);
CREATE INDEX audit_by_time ON audit (at, id);
CREATE INDEX audit_refused_by_time ON audit (at) WHERE outcome = 'refused';

-- How long an entry is kept at least. Attempts that anybody can make by the million are kept for a season, acts for
-- longer than the decisions they may explain.
CREATE FUNCTION audit_retention(outcome text) RETURNS interval IMMUTABLE LANGUAGE sql
    RETURN CASE outcome WHEN 'refused' THEN interval '90 days' ELSE interval '400 days' END;

CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit FOR EACH ROW
    EXECUTE FUNCTION refuse('The audit trail is only added to: no entry is ever changed.');
CREATE TRIGGER audit_is_kept_for_its_time BEFORE DELETE ON audit FOR EACH ROW
    WHEN (OLD.at >= clock_timestamp() - audit_retention(OLD.outcome))
    EXECUTE FUNCTION refuse('The audit trail is only added to: no entry is deleted before its time is over, which audit_retention() tells.');
CREATE TRIGGER audit_is_kept BEFORE TRUNCATE ON audit FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('The audit trail is not truncated: old entries are deleted when their time is over.');
