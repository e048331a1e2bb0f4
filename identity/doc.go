// Package identity owns who may act: organizations, their API keys, the scopes of a key, and the actor that every
// record of the product names.
//
// The organization of a call comes from its key alone. This package knows nothing of servers, reservations, databases
// or HTTP; it imports nothing of this module, so that everything else may import it. Stores are interfaces declared
// here, beside the services that call them; every write of theirs leaves an entry in the audit trail in the same
// transaction.
package identity
