package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// writeJSON writes a value, encoded before the status is sent, so that a value that cannot be encoded is no half answer.
func writeJSON(w http.ResponseWriter, status int, value any) error {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(value); err != nil {
		return err
	}
	w.WriteHeader(status)
	_, err := text.WriteTo(w)
	return err
}

// withHeadMethod adds HEAD, which every GET has, to a list of methods.
func withHeadMethod(allow string) string {
	if strings.Contains(allow, http.MethodGet) && !strings.Contains(allow, http.MethodHead) {
		return allow + ", " + http.MethodHead
	}
	return allow
}
