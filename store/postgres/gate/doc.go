// Package gate names the places inside the store's transactions at which a test can pause, fail or cancel, so that races
// are forced and not waited for.
//
// A production build has no gates: without the build tag "gates" every function here is empty and the statements on
// both sides of a place travel together. With the tag a place splits the statements only for a context that carries a
// Set in which it is armed. Gates know nothing of SQL.
package gate

// Place is one named place.
type Place string

// The places, in the order in which a request passes them.
const (
	ReserveAfterKey      Place = "reserve.afterKey"      // key asked; try-locks not tried
	ReserveAfterOpen     Place = "reserve.afterOpen"     // key, locks and order line asked; nothing refused yet
	ReserveAfterList     Place = "reserve.afterList"     // the inventory read; nothing locked
	ReserveAfterLock     Place = "reserve.afterLock"     // one server locked; not judged again
	ReserveAfterInsert   Place = "reserve.afterInsert"   // reserved; not committed
	ReserveBeforeRefusal Place = "reserve.beforeRefusal" // about to ask key and order line once more
	ChangeAfterServer    Place = "change.afterServer"    // server row locked; reservation row not yet
	ChangeAfterLock      Place = "change.afterLock"      // both locked and read; nothing written
	ConvertAfterBinding  Place = "convert.afterBinding"  // binding written; reservation still held
	ConvertBeforeCommit  Place = "convert.beforeCommit"  // both written; not committed
	SweepAfterPick       Place = "sweep.afterPick"       // a batch was expired; not committed
)

// Places lists every place, so that a test can tell one that no run reached.
func Places() []Place {
	return []Place{
		ReserveAfterKey, ReserveAfterOpen, ReserveAfterList, ReserveAfterLock, ReserveAfterInsert, ReserveBeforeRefusal,
		ChangeAfterServer, ChangeAfterLock, ConvertAfterBinding, ConvertBeforeCommit, SweepAfterPick,
	}
}
