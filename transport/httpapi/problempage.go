package httpapi

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"allocator/transport/httpapi/wire"
)

//go:embed problempage.html
var problemPageText string

var problemPage = template.Must(template.New("problem").Parse(problemPageText))

// actionWords says for people what each action of a problem means.
var actionWords = map[string]string{
	actionRetry:          "Send the same request again, after the pause that Retry-After names.",
	actionChangeRequest:  "Change the request before you send it again.",
	actionChooseOther:    "Choose something else and make a new request.",
	actionWaitUntil:      "Wait until the time that the answer names.",
	actionContactSupport: "Ask whoever runs this service or owns the API key.",
	actionNone:           "Nothing needs to be done.",
}

// problem explains one code, to people as a page and to programs as JSON.
func (s *Server) problem(c echo.Context) error {
	row := problemTypes[c.Param("slug")]
	if row == nil {
		return newProblem("not_found")
	}
	c.Response().Header().Set("Vary", "Accept")
	if prefersJSON(c.Request().Header.Values("Accept")) {
		return c.JSON(http.StatusOK, wire.ProblemType{
			Code: wire.ProblemCode(row.code), Status: row.status, Title: row.title, Detail: row.sentence,
			Retryable: row.retryable(), Action: wire.Action(row.action),
		})
	}
	var page bytes.Buffer
	if err := problemPage.Execute(&page, map[string]any{
		"Code": row.code, "Status": row.status, "StatusText": http.StatusText(row.status), "Title": row.title,
		"Sentence": row.sentence, "Retryable": row.retryable(), "Action": actionWords[row.action],
	}); err != nil {
		return err
	}
	c.Response().Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	return c.HTMLBlob(http.StatusOK, page.Bytes())
}

// prefersJSON compares the weights that an Accept header gives to JSON and to HTML. Without a preference it is the page:
// the link is followed by people.
func prefersJSON(accept []string) bool {
	inJSON, _ := weigh(accept, "application/json")
	asPage, _ := weigh(accept, "text/html")
	return inJSON > asPage
}

// weigh is what an Accept header says of a media type (RFC 9110, section 12.5.1): its weight, and how specific the entry is
// that says so; 3 names the type itself, 0 is none.
func weigh(accept []string, candidate string) (weight float64, specific int) {
	major, _, _ := strings.Cut(candidate, "/")
	for entry := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, params, _ := strings.Cut(strings.TrimSpace(entry), ";")
		rank := map[string]int{"*/*": 1, major + "/*": 2, candidate: 3}[strings.ToLower(strings.TrimSpace(kind))]
		if rank > specific {
			specific, weight = rank, quality(params)
		}
	}
	return weight, specific
}

// quality reads the q of one entry; none means 1.
func quality(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || q < 0 || q > 1 {
				return 0
			}
			return q
		}
	}
	return 1
}
