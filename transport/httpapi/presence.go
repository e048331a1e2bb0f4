package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"allocator/identity"
	"allocator/lease"
	"allocator/transport/httpapi/wire"
)

// presenceQuestion is what decides about an answer: people at consoles that share a key get the same one.
type presenceQuestion struct {
	organization identity.OrganizationID
	key          identity.KeyID
	resource     string
}

// GetPresence implements wire.StrictServerInterface. Every open page asks for it, and a busy rack has a hundred leases: those
// who ask at once share one question to the database and one text.
func (h *handlers) GetPresence(ctx context.Context, r wire.GetPresenceRequestObject) (wire.GetPresenceResponseObject, error) {
	caller := callerOf(ctx)
	question := presenceQuestion{caller.Organization, caller.KeyID, r.Resource}
	text, err := h.presence.do(ctx, question, func(ctx context.Context) (presenceText, error) {
		p, err := h.Leases.Presence(ctx, writerOf(ctx, "", ""), r.Resource)
		if err != nil {
			return nil, err
		}
		return append(writePresence(p), '\n'), nil
	})
	if err != nil {
		return nil, err
	}
	return text, nil
}

// presenceText is a wire.Presence in JSON.
type presenceText []byte

// VisitGetPresenceResponse implements wire.GetPresenceResponseObject.
func (t presenceText) VisitGetPresenceResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(t))) // or it would be sent in chunks
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(t)
	return err
}

// leaseLength is about how long a lease is in JSON.
const leaseLength = 256

// writePresence writes what wire.Presence stands for, in one line. By way of the wire's types it took more time than all the
// rest of a request.
func writePresence(p lease.Presence) []byte {
	out := make([]byte, 0, leaseLength*(len(p.Leases)+1))
	out = appendText(append(out, `{"resource":`...), p.Resource)
	out = appendTime(append(out, `,"at":`...), p.Now)
	out = append(out, `,"leases":[`...)
	for i := range p.Leases {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendLease(out, &p.Leases[i], p.Now)
	}
	return append(out, "]}"...)
}

// appendLease writes what wire.Lease stands for.
func appendLease(out []byte, l *lease.Lease, now time.Time) []byte {
	out = appendText(append(out, `{"resource":`...), l.Key.Resource)
	out = appendText(append(out, `,"part":`...), l.Key.Part)
	out = appendText(append(out, `,"holder":{"id":`...), l.Holder.ID)
	out = appendText(append(out, `,"name":`...), l.Holder.Name)
	out = appendTime(append(out, `},"acquired_at":`...), l.AcquiredAt)
	out = appendTime(append(out, `,"expires_at":`...), l.ExpiresAt)
	out = strconv.AppendInt(append(out, `,"seconds_left":`...), l.SecondsLeftAt(now), 10)
	return append(out, '}')
}

func appendTime(out []byte, at time.Time) []byte {
	out = at.UTC().AppendFormat(append(out, '"'), time.RFC3339Nano)
	return append(out, '"')
}
