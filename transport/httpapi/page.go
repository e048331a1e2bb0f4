package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"allocator/identity"
	"allocator/transport/httpapi/strictjson"
)

const (
	defaultPage = 50
	maxPage     = 500
)

// page is one page of a list: how many rows, and behind which one. Its token is bound to the organization, the list and
// the filter. It is no secret and needs none: whoever makes one up reads from another place of the same list.
type page struct {
	limit int
	after string
	bound []byte
}

// boundLength is how many bytes of the hash a token carries: enough that no other filter fits by accident.
const boundLength = 12

// newPage reads page_size and page_token. The filter is whatever the list was asked for, without these two.
func newPage(caller identity.Caller, list string, filter any, size int64, token string) (page, error) {
	text, err := json.Marshal([]any{caller.Organization, list, filter})
	if err != nil {
		return page{}, err
	}
	sum := sha256.Sum256(text)
	p := page{limit: defaultPage, bound: sum[:boundLength]}
	if size > 0 {
		p.limit = int(min(size, maxPage))
	}
	if token == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	oneSpelling := base64.RawURLEncoding.EncodeToString(raw) == token // a decoder passes over line breaks
	if err != nil || !oneSpelling || len(raw) <= boundLength || string(raw[:boundLength]) != string(p.bound) {
		return page{}, errPageToken()
	}
	p.after = string(raw[boundLength:])
	return p, nil
}

// errPageToken says that a token belongs to no page of this list. Stores that do not know the row behind a token come
// to the same answer.
func errPageToken() error {
	return invalid(strictjson.Fault{
		Pointer: "query:page_token", Code: strictjson.CodeMalformed,
		Detail: "It must be the next_page_token of an earlier page with the same filter.",
	})
}

// isID tells whether the row behind which a page begins can be one; a made-up token must not reach the database.
func (p page) isID(prefix string) bool {
	rest, found := strings.CutPrefix(p.after, prefix)
	return p.after == "" || (found && len(rest) == 32 && strings.Trim(rest, "0123456789abcdef") == "")
}

// cut takes the page out of rows that were read with one more than the limit, and returns the token of the next page.
func cut[T any](p page, rows []T, id func(T) string) ([]T, string) {
	if len(rows) <= p.limit {
		return rows, ""
	}
	rows = rows[:p.limit]
	return rows, base64.RawURLEncoding.EncodeToString(append(append([]byte{}, p.bound...), id(rows[p.limit-1])...))
}
