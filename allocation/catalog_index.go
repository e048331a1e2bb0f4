package allocation

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"time"

	"allocator/inventory"
)

var zeroTime time.Time

// entry is one server in memory.
type entry struct {
	id       inventory.ServerID // never changed, nor is its hash
	name     string
	rack     string
	position string
	hash     uint64
	kind     int32
	status   status
	version  int64 // of the record

	// the latest word about who holds it
	fence       int64
	holdVersion int64
	sold        bool
	until       int64 // Unix microseconds; of a hold
	lapsed      bool  // its hold is past its deadline, and no later word has come
}

// status is a server's state and what holds it.
type status struct {
	state inventory.State
	hold  holding
}

// holding is what a server is taken by.
type holding uint8

const (
	nobody holding = iota
	held
	bound
)

func (s status) free() bool { return s.state.Sellable() && s.hold == nobody }

// index is the catalog of one organization. The lock is for readers and for those who apply news.
type index struct {
	mu      sync.RWMutex
	servers []entry
	at      map[inventory.ServerID]int32
	kinds   []*kind
	kindAt  map[string]int32
	cells   []cell
	cellAt  map[cell]int32
	totals  map[status]int
	due     dueHeap
	now     time.Time // the database's clock when it was read last
	horizon Horizon
	epoch   string
	filling bool              // the first read is under way
	grown   map[int32][]int32 // by kind: the servers that came meanwhile
	key     kindKey           // where keys of kinds are built
	roster  uint64            // grows whenever a server comes, or changes its kind or its name

	judged judgments
	packs  packs
}

func newIndex() *index {
	x := &index{}
	x.clear()
	return x
}

// clear forgets what servers there are.
func (x *index) clear() {
	x.servers, x.kinds, x.cells, x.due = nil, nil, nil, nil
	x.at, x.kindAt, x.totals = map[inventory.ServerID]int32{}, map[string]int32{}, map[status]int{}
	x.cellAt = map[cell]int32{}
}

// apply takes in news; what is older than what is known changes nothing. News of a read that began before everything was
// forgotten are no beginning: what they do not tell would be taken for not being there.
func (x *index) apply(news News) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !news.Horizon.IsZero() && x.horizon.IsZero() {
		return
	}
	x.take(news)
}

// begin takes in where a read of everything began, once all of it is known.
func (x *index) begin(start News) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.take(start)
}

func (x *index) take(news News) {
	x.addServers(news.Servers)
	for i := range news.Holdings {
		x.hold(&news.Holdings[i])
	}
	if news.At.After(x.now) {
		x.now = news.At
	}
	if news.Horizon.later(x.horizon) {
		x.horizon = news.Horizon
	}
	if news.Epoch != "" {
		x.epoch = news.Epoch
	}
	x.letGo()
}

// setBack is how far the database's clock must be behind where it was to have been set back. Less is the time that a
// read took that began earlier than another.
const setBack = 10 * time.Second

// forgetUnless forgets everything if the database is not the one that it was: a standby that took over, or a backup that
// was restored, may lack what was read, and begins again with numbers of transactions that were read before. By a clock
// that was set back, holds live again that had been let go.
func (x *index) forgetUnless(epoch string, at time.Time) (forgotten bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.epoch == "" || x.epoch == epoch && x.now.Sub(at) < setBack {
		return false
	}
	return x.forgetAll()
}

// forget forgets everything, unless a sibling has done so: what is being read anew already stays.
func (x *index) forget() (forgotten bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.horizon.IsZero() || x.forgetAll()
}

func (x *index) forgetAll() bool {
	x.clear()
	x.horizon, x.epoch, x.now = Horizon{}, "", zeroTime
	x.roster++
	return true
}

// addServers takes in records, those of a kind that grows together at once.
func (x *index) addServers(records []inventory.Server) {
	grown := x.grown
	if !x.filling {
		grown = map[int32][]int32{}
	}
	for i := range records {
		s := &records[i]
		at, known := x.at[s.ID]
		if known && x.servers[at].version >= s.Version {
			continue
		}
		k := x.kindOf(s)
		if !known {
			at = int32(len(x.servers)) //nolint:gosec // an organization has fewer servers than that
			x.at[s.ID] = at
			x.servers = append(x.servers, entry{id: s.ID, hash: hashID(s.ID), kind: -1})
		}
		e := &x.servers[at]
		if e.kind != k {
			x.leaveKind(e)
			grown[k] = append(grown[k], at)
			e.kind = k
			x.roster++
		} else if e.name != s.Name {
			x.roster++
		}
		e.name, e.rack, e.position, e.version = s.Name, s.Rack, s.Position, s.Version
		x.setStatus(at, status{state: s.State, hold: e.status.hold})
	}
	if !x.filling {
		x.growAll(grown)
	}
}

// growAll puts servers where they belong; one may have moved on meanwhile.
func (x *index) growAll(grown map[int32][]int32) {
	for k, members := range grown {
		members = slices.DeleteFunc(members, func(member int32) bool { return x.servers[member].kind != k })
		x.grow(x.kinds[k], members)
	}
}

func (x *index) kindOf(s *inventory.Server) int32 {
	key := x.key.of(s)
	k, known := x.kindAt[string(key)]
	if !known {
		shared := common(*s)
		k = int32(len(x.kinds)) //nolint:gosec // fewer than servers
		x.kindAt[string(key)] = k
		x.kinds = append(x.kinds, &kind{facts: Facts{Server: shared}, size: shared.Size(), cell: x.cellOf(s)})
	}
	return k
}

// cellOf finds where a server is counted.
func (x *index) cellOf(s *inventory.Server) int32 {
	c := cell{s.Site, s.Model}
	at, known := x.cellAt[c]
	if !known {
		at = int32(len(x.cells)) //nolint:gosec // fewer than kinds
		x.cellAt[c] = at
		x.cells = append(x.cells, c)
	}
	return at
}

// leaveKind takes a server out of the kind that it was of.
func (x *index) leaveKind(e *entry) {
	if e.kind < 0 {
		return
	}
	k := x.kinds[e.kind]
	rest := make([]int32, 0, len(k.order))
	for _, member := range k.order {
		if x.servers[member].id != e.id {
			rest = append(rest, member)
		}
	}
	k.order = nil
	e.kind = -1
	x.grow(k, rest)
}

// grow rebuilds a kind with more members.
func (x *index) grow(k *kind, members []int32) {
	k.order = append(k.order, members...)
	slices.SortFunc(k.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(x.servers[a].hash, x.servers[b].hash), cmp.Compare(x.servers[a].id, x.servers[b].id))
	})
	k.order = slices.Compact(k.order)
	k.hash = make([]uint64, len(k.order))
	k.free = make([]uint64, (len(k.order)+63)/64)
	k.nFree, k.taken = 0, [3]int{}
	for place, member := range k.order {
		k.hash[place] = x.servers[member].hash
		s := x.servers[member].status
		k.setFree(place, s.free())
		k.taken[s.hold]++
	}
}

// setStatus moves a server from one status to another, in every count that knows of it.
func (x *index) setStatus(at int32, next status) {
	e := &x.servers[at]
	if e.status != next {
		x.packs.note(at)
	}
	if e.status.state != "" {
		x.totals[e.status]--
	}
	x.totals[next]++
	last := e.status
	e.status = next
	if e.kind < 0 {
		return
	}
	k := x.kinds[e.kind]
	for place := k.place(e.hash); place < len(k.order) && k.hash[place] == e.hash; place++ {
		if x.servers[k.order[place]].id == e.id {
			k.setFree(place, next.free())
			k.taken[last.hold]--
			k.taken[next.hold]++
		}
	}
}

// hold takes in what became of a server.
func (x *index) hold(h *Holding) {
	at, known := x.at[h.Server]
	if !known {
		return // its record comes with a later read, and this word again with it
	}
	e := &x.servers[at]
	if !h.laterThan(e.fence, e.sold, e.holdVersion) {
		return
	}
	e.fence, e.sold, e.holdVersion, e.until = h.Fence, h.Sold, h.Version, h.Until.UnixMicro()
	e.lapsed = false
	next := nobody
	switch {
	case h.Taken && h.Sold:
		next = bound
	case h.Taken:
		next = held
		heap.Push(&x.due, dueAt{until: e.until, server: at, fence: e.fence})
	}
	x.setStatus(at, status{state: e.status.state, hold: next})
}

// letGo frees the servers whose hold is past its deadline by the database's clock as it was read last.
func (x *index) letGo() {
	now := x.now.UnixMicro()
	for len(x.due) > 0 && x.due[0].until <= now {
		d := heap.Pop(&x.due).(dueAt) //nolint:forcetypeassert // the heap holds nothing else
		e := &x.servers[d.server]
		if e.status.hold == held && e.fence == d.fence && e.until <= now {
			e.lapsed = true
			x.setStatus(d.server, status{state: e.status.state, hold: nobody})
		}
	}
}

// dueAt is a hold that ends; one that was renewed or ended meanwhile is passed over when its time comes.
type dueAt struct {
	until  int64
	server int32
	fence  int64
}

// dueHeap is a container/heap of holds by their deadline.
type dueHeap []dueAt

// Len implements heap.Interface.
func (h *dueHeap) Len() int { return len(*h) }

// Less implements heap.Interface.
func (h *dueHeap) Less(i, j int) bool { return (*h)[i].until < (*h)[j].until }

// Swap implements heap.Interface.
func (h *dueHeap) Swap(i, j int) { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(dueAt)) } //nolint:forcetypeassert // container/heap's contract

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
