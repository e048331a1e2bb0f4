-- +goose Up

-- Locks that other programs take through a door, so that any process of the service can renew and release them. The
-- fence comes from one sequence and is drawn under the row's own lock, so that it grows per key. CACHE 1, or sessions
-- would hand out numbers that they drew earlier.
CREATE SEQUENCE lock_fences AS bigint MAXVALUE 9007199254740991 CACHE 1;

-- A lock is free when there is no row, or from expires_at on. A row outlives its lock: if it went with it, a first
-- insertion that has drawn its fence and was then held up could come after a later one. Nothing but the primary key is
-- indexed, so that taking, renewing and releasing rewrite a row in its page.
CREATE TABLE locks (
    organization_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
    key             text COLLATE "C" NOT NULL,
    token           bytea NOT NULL, -- whoever knows it is the holder; empty in a released lock
    digest          bigint, -- XXH3-64 of the token, which SQL cannot compute; a lock without one matches no digest
    fence           bigint NOT NULL,
    expires_at      timestamptz NOT NULL, -- -infinity in a released lock
    changed_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (organization_id, key),
    CONSTRAINT locks_key_has_1_to_255_bytes CHECK (octet_length(key) BETWEEN 1 AND 255),
    CONSTRAINT locks_key_has_no_control_characters CHECK (key !~ '[[:cntrl:]]'),
    CONSTRAINT locks_token_has_at_most_64_kib CHECK (octet_length(token) <= 65536),
    CONSTRAINT locks_live_has_a_token CHECK (expires_at = '-infinity' OR octet_length(token) > 0),
    CONSTRAINT locks_fence_is_positive CHECK (fence > 0)
) WITH (fillfactor = 70);

CREATE TRIGGER locks_fence_grows BEFORE UPDATE ON locks FOR EACH ROW WHEN (NEW.fence < OLD.fence)
    EXECUTE FUNCTION refuse('The fence of a lock only grows. To break a lock set its token to '''' and its expires_at to -infinity.');

-- Where fences were drawn last: a server and its timeline. A standby that takes over, and a backup that is restored, may
-- not know of the last fences that were given out; what is fenced by them must not see them again.
CREATE TABLE fence_epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    place    text NOT NULL
);

-- Whoever connects says where. At another place than the last one all fences go on far above the earlier ones; the
-- second who comes waits for the first.
-- +goose StatementBegin
CREATE FUNCTION enter_fence_epoch(here text) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO fence_epoch (place) VALUES (here) ON CONFLICT (only_row) DO NOTHING;
    UPDATE fence_epoch SET place = here WHERE place <> here;
    IF FOUND THEN
        PERFORM setval('reservation_fence', nextval('reservation_fence') + 1000000000),
            setval('lock_fences', nextval('lock_fences') + 1000000000);
    END IF;
END $$;
-- +goose StatementEnd
