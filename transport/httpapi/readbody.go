package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"allocator/transport/httpapi/strictjson"
)

// maxBody bounds a body before anything of it is parsed.
const maxBody = 64 << 10

// readBody reads the whole body and holds it against the contract. What reaches the handler has been checked.
func readBody(c echo.Context, op *operation) error {
	r := c.Request()
	if r.ContentLength > maxBody {
		return newProblem("too_large")
	}
	if err := checkEncoding(r, op); err != nil {
		return err
	}
	text, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return newProblem("too_large")
	case err != nil:
		return invalid(strictjson.Fault{Code: strictjson.CodeMalformedJSON, Detail: "The body ended before it was complete, or came too slowly."})
	case op.body == nil && len(text) > 0:
		return invalid(strictjson.Fault{Code: strictjson.CodeUnknownField, Detail: "This takes no body."})
	case op.body == nil, len(text) == 0 && !op.needBody:
		return nil
	}
	return keepBody(callOf(r.Context()), op.body, text)
}

// keepBody parses and checks, and lists repeated fields together with the rest.
func keepBody(k *call, schema *strictjson.Schema, text []byte) error {
	value, faults := strictjson.Parse(text)
	if value != nil {
		faults = append(faults, schema.Check(value)...)
	}
	k.text, k.body = text, value
	return refuseFaults(faults)
}

// checkEncoding refuses a body that is not plain JSON in UTF-8. A compressed one could be a bomb.
func checkEncoding(r *http.Request, op *operation) error {
	if op.body == nil || (r.ContentLength == 0 && !op.needBody) {
		return nil
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	encoding := r.Header.Get("Content-Encoding")
	charset, has := params["charset"]
	switch {
	case err != nil, kind != "application/json", len(r.Header.Values("Content-Type")) != 1,
		encoding != "" && !strings.EqualFold(encoding, "identity"),
		has && !strings.EqualFold(charset, "utf-8"):
		return newProblem("unsupported_media_type")
	}
	return nil
}

// binder hands the generated code the body that was checked. Echo's own would take fields from elsewhere, too.
type binder struct{}

// Bind implements echo.Binder. No body is io.EOF, which the generated code knows.
func (binder) Bind(into any, c echo.Context) error {
	k := callOf(c.Request().Context())
	if len(k.text) == 0 {
		return io.EOF
	}
	return json.Unmarshal(k.text, into)
}
