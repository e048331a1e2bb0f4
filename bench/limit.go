package bench

import (
	"context"
	"strconv"

	"github.com/google/uuid"
)

// limitSQL is the limit: nothing that holds a server in these tables can be smaller. It is told a free server, asks
// nothing, judges nothing, and leaves neither decision nor event.
const limitSQL = `WITH free AS (SELECT id FROM servers WHERE organization_id = $1 AND id = $2 FOR UPDATE SKIP LOCKED)
	INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at, max_expires_at,
		idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
	SELECT $1, $3, id, $4, '1', 'key', clock_timestamp() + interval '1 day', clock_timestamp() + interval '1 day',
		$4, '\x00', 'k', '{}', '{}', '{"v": 1}', $3
	FROM free`

// limit holds known free servers with that statement.
func (w *world) limit() *contender {
	var round string
	return &contender{
		name: "limit", most: w.most(),
		prepare: func(_ context.Context, r string) error { round = r; return nil },
		do: func(ctx context.Context, i int) (bool, error) {
			tag, err := w.pool.Exec(ctx, limitSQL, org, w.servers.free[i], uuid.Must(uuid.NewV7()), round+strconv.Itoa(i))
			return tag.RowsAffected() == 1, err
		},
	}
}

// most is how many servers one round may take: half of what is free, so that the last ones are as easy to find as the
// first, and no more than anybody could hold in that time.
func (w *world) most() int {
	return max(1, min(len(w.servers.free)/2, int(w.duration.Seconds()*fastest)))
}

// fastest is more than this many holds in a second no contender makes on the machines this is meant for.
const fastest = 20_000
