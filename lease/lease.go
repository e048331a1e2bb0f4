package lease

import (
	"cmp"
	"slices"
	"time"
)

// The bounds of a lease's time. A page that is open renews every 20 seconds for DefaultSeconds.
const (
	MinSeconds     = 1
	DefaultSeconds = 60
	MaxSeconds     = 86400
)

// Lease is one row: somebody has a key until a time. From ExpiresAt on it counts for nothing, purged or not; yet as long
// as nobody else has taken the key, its holder's heartbeat keeps it.
type Lease struct {
	Key        Key
	Holder     Holder
	Credential string    // that of the writer who took it
	AcquiredAt time.Time // when it was granted; a heartbeat does not move it
	ExpiresAt  time.Time // a whole second, UTC
	Version    int64     // grows with every write of the row
}

// ActiveAt tells whether the lease counts: before ExpiresAt, and no longer at it.
func (l Lease) ActiveAt(now time.Time) bool { return now.Before(l.ExpiresAt) }

// SecondsLeftAt is how many seconds the lease still counts, to the nearest; at least 1 as long as it counts, and 0 when it is
// over.
func (l Lease) SecondsLeftAt(now time.Time) int64 {
	if !l.ActiveAt(now) {
		return 0
	}
	return max(1, int64(l.ExpiresAt.Sub(now).Round(time.Second)/time.Second))
}

// Standing is every lease of one resource, expired ones included, and the store's clock when they were read.
type Standing struct {
	Now    time.Time
	Leases []Lease
}

// Active returns the leases that count, the whole resource first, then by part.
func (s Standing) Active() []Lease {
	active := make([]Lease, 0, len(s.Leases))
	for _, l := range s.Leases {
		if l.ActiveAt(s.Now) {
			active = append(active, l)
		}
	}
	slices.SortFunc(active, byPart)
	return active
}

func byPart(a, b Lease) int {
	return cmp.Or(cmp.Compare(a.Key.Resource, b.Key.Resource), cmp.Compare(a.Key.Part, b.Key.Part))
}

// blocking returns the first active lease of somebody else that overlaps a key.
func (s Standing) blocking(holder Holder, key Key) *Lease {
	for _, l := range s.Active() {
		if !l.Holder.Is(holder) && l.Key.Overlaps(key) {
			return &l
		}
	}
	return nil
}

// at returns the row of a key, whoever has it and expired or not.
func (s Standing) at(key Key) *Lease {
	for i := range s.Leases {
		if s.Leases[i].Key == key {
			return &s.Leases[i]
		}
	}
	return nil
}

// until is when a lease of so many seconds from now on ends: at the nearest whole second, so that a lease of a minute is never
// off by more than half of one.
func until(now time.Time, seconds int64) time.Time {
	return now.UTC().Round(time.Second).Add(time.Duration(seconds) * time.Second)
}

// Presence is who edits a resource: its active leases, the whole first, then by part.
type Presence struct {
	Resource string
	Now      time.Time
	Leases   []Lease
}
