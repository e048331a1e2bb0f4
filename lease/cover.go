package lease

import "slices"

// Block is what is saved at once, named by every key under which it may be written: the part of a record that it is,
// and the places in which the record stands, such as its rack and its chassis.
type Block []Key

// Cover tells whether a holder may write all of these blocks: each needs an active lease of the holder that covers one of
// its keys. Otherwise the error is a HeldError if somebody else has something of it, and a LostError if nobody has. It must
// be asked inside the transaction that writes, on leases of which the holder's own are locked there.
func Cover(seen Standing, holder Holder, blocks []Block) error {
	for _, block := range blocks {
		if seen.covered(holder, block) {
			continue
		}
		if err := Hinder(seen, holder, block); err != nil {
			return err
		}
		return &LostError{Key: block[0], Now: seen.Now}
	}
	return nil
}

// Hinder returns a HeldError if somebody else has an active lease on any of the keys or on what overlaps them.
func Hinder(seen Standing, holder Holder, keys []Key) error {
	for _, key := range keys {
		if l := seen.blocking(holder, key); l != nil {
			return &HeldError{Lease: l, Now: seen.Now}
		}
	}
	return nil
}

func (s Standing) covered(holder Holder, block Block) bool {
	for _, l := range s.Leases {
		if !l.ActiveAt(s.Now) || !l.Holder.Is(holder) {
			continue
		}
		if slices.ContainsFunc(block, l.Key.Covers) {
			return true
		}
	}
	return false
}
