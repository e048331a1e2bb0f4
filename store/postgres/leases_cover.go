package postgres

import (
	"context"
	"slices"
	"strings"

	"allocator/identity"
	"allocator/inventory"
	"allocator/lease"
)

// editor is who writes the record of a server under an edit lease.
type editor struct {
	organization string
	holder       string // empty: somebody who edits nothing, such as an import or automation
	credential   string // empty: the database itself
}

// editorOf reads who edits out of who writes.
func editorOf(by inventory.Change) editor {
	e := editor{organization: by.Organization, holder: by.Editor}
	if by.ActorKind == string(identity.ActorKey) {
		e.credential = by.ActorID
	}
	return e
}

// The attributes by which a record says in which chassis its server is, and as which node.
const (
	chassisAttribute = "chassis"
	nodeAttribute    = "node"
)

// places are the keys under which the places of a server are leased: its rack with its position, its chassis with its node.
func places(s *inventory.Server) (keys []lease.Key) {
	if s.Rack != "" {
		keys = append(keys, keyOfPlace("rack:"+s.Rack, "u"+s.Position))
	}
	if chassis := s.Attributes[chassisAttribute]; chassis != "" {
		keys = append(keys, keyOfPlace("chassis:"+chassis, s.Attributes[nodeAttribute]))
	}
	return keys
}

// keyOfPlace is the key of a place; one whose name is no part is leased with the whole alone.
func keyOfPlace(resource, part string) lease.Key {
	if !lease.ValidPart(part) || part == "u" {
		part = ""
	}
	return lease.Key{Resource: resource, Part: part}
}

// recordKey is the key of a block of a server's record.
func recordKey(id inventory.ServerID, part string) lease.Key {
	return lease.Key{Resource: "server:" + string(id), Part: part}
}

// mustCover demands, in the transaction that writes them, that the editor's leases cover these blocks of a server's record:
// each by a lease on the record or that part of it, on the server's rack or on its chassis. It locks the editor's leases,
// so that nobody takes them over before the write is committed, and looks at them and at the clock behind the locks.
func mustCover(ctx context.Context, q querier, by editor, s *inventory.Server, parts []string) error {
	around := places(s)
	var blocks []lease.Block
	for _, part := range parts {
		blocks = append(blocks, append(lease.Block{recordKey(s.ID, part)}, around...))
	}
	resources := resourcesOf(append([]lease.Key{recordKey(s.ID, "")}, around...))
	if _, err := q.Exec(ctx, lockLeasesSQL, by.organization, resources, by.holder); err != nil {
		return err
	}
	seen, err := standing(ctx, q, by.organization, resources)
	if err != nil {
		return err
	}
	may, err := mayEdit(ctx, q, by.organization, by.credential)
	switch {
	case err != nil:
		return err
	case !may:
		return lease.ErrEditRefused
	}
	return lease.Cover(seen, lease.Holder{ID: by.holder}, blocks)
}

const lockLeasesSQL = `SELECT FROM leases WHERE organization_id = $1 AND resource = ANY ($2) AND holder_id = $3
	ORDER BY resource, part FOR SHARE`

// mayWrite demands of an editor leases on what is changed of a record, and that nobody else edits the place to which the
// server moves.
func mayWrite(ctx context.Context, q querier, by editor, now, next *inventory.Server, changed []inventory.Changed) error {
	if by.holder == "" {
		return nil // nobody who edits
	}
	var parts []string
	for _, c := range changed {
		part, _, _ := strings.Cut(c.Field, ".")
		parts = append(parts, part)
	}
	if err := mustCover(ctx, q, by, now, parts); err != nil || slices.Equal(places(now), places(next)) {
		return err
	}
	seen, err := standing(ctx, q, by.organization, resourcesOf(places(next)))
	if err != nil {
		return err
	}
	return lease.Hinder(seen, lease.Holder{ID: by.holder}, places(next))
}

// mustNotHinder demands that nobody else edits the racks and chassis to which servers come. Servers that are there already
// are left as they are, and hinder nobody.
func mustNotHinder(ctx context.Context, q querier, by editor, servers ...inventory.Server) error {
	var keys []lease.Key
	for i := range servers {
		keys = append(keys, places(&servers[i])...)
	}
	if len(keys) == 0 {
		return nil
	}
	seen, err := standing(ctx, q, by.organization, resourcesOf(keys))
	if err != nil || len(seen.Leases) == 0 {
		return err
	}
	for i := range servers {
		held := lease.Hinder(seen, lease.Holder{ID: by.holder}, places(&servers[i]))
		if held == nil {
			continue
		}
		there, err := isThere(ctx, q, by.organization, &servers[i])
		switch {
		case err != nil:
			return err
		case !there:
			return held
		}
	}
	return nil
}

func isThere(ctx context.Context, q querier, organization string, s *inventory.Server) (there bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM servers WHERE organization_id = $1 AND source = $2 AND external_id = $3)`,
		organization, s.Source, s.ExternalID).Scan(&there)
	return there, err
}

func resourcesOf(keys []lease.Key) (names []string) {
	for _, key := range keys {
		if len(key.Resource) <= lease.MaxResource { // a longer one cannot be leased
			names = append(names, key.Resource)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
