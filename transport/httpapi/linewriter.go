package httpapi

import (
	"encoding/json"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/transport/httpapi/wire"
)

// linesAtOnce is how many bytes of lines are gathered before they are sent.
const linesAtOnce = 32 << 10

// maxSaid bounds how many lists of reasons are remembered.
const maxSaid = 2000

// lineWriter writes the lines of an evaluation. Many servers have the same reasons, so these are written out once.
type lineWriter struct {
	out     eventWriter
	mayGoOn func() error
	buffer  []byte

	said  map[allocation.Verdict][]byte // reasons as JSON
	noted map[inventory.ServerID]bool
	notes wire.Notes
	note  []byte // notes as JSON
}

// notedOn sets which servers are noted as under edit.
func (l *lineWriter) notedOn(servers map[inventory.ServerID]bool) {
	l.noted = servers
	for id := range servers {
		l.notes = notes(id, []inventory.ServerID{id})
		l.note = mustJSON(l.notes)
		return
	}
}

// line adds one line.
func (l *lineWriter) line(value wire.EvaluationLine) error {
	l.buffer = append(append(l.buffer, mustJSON(value)...), '\n')
	return l.sendFull()
}

func (l *lineWriter) ranked(c allocation.Candidate) error {
	var noted wire.Notes
	if l.noted[c.Server.ID] {
		noted = l.notes
	}
	return l.line(wire.EvaluationLine{Ranked: new(viewRanked(c, noted))})
}

// rejected adds a server that does not fit: a wire.Candidate, put together from parts that are written already.
func (l *lineWriter) rejected(r *allocation.Rejected) error {
	b := l.buffer
	b = append(b, `{"rejected":{"server_id":`...)
	b = appendText(b, string(r.Server))
	b = append(b, `,"name":`...)
	b = appendText(b, r.Name)
	b = append(b, `,"site":`...)
	b = appendText(b, r.Site)
	b = append(b, `,"eligible":false,"reasons":`...)
	b = append(b, l.reasons(r.Verdict)...)
	if l.noted[r.Server] {
		b = append(b, `,"notes":`...)
		b = append(b, l.note...)
	}
	b = append(b, "}}\n"...)
	l.buffer = b
	return l.sendFull()
}

func (l *lineWriter) reasons(v allocation.Verdict) []byte {
	said, known := l.said[v]
	if !known {
		if l.said == nil || len(l.said) >= maxSaid {
			l.said = map[allocation.Verdict][]byte{}
		}
		said = mustJSON(each(v.Reasons(), viewReason))
		l.said[v] = said
	}
	return said
}

func (l *lineWriter) sendFull() error {
	if len(l.buffer) < linesAtOnce {
		return nil
	}
	return l.flush()
}

// flush sends what was gathered.
func (l *lineWriter) flush() error {
	if err := l.mayGoOn(); err != nil {
		return err
	}
	err := l.out.write(l.buffer)
	l.buffer = l.buffer[:0]
	return err
}

// appendText adds a text as JSON. Most have nothing that is to be escaped.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return append(b, mustJSON(text)...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

// mustJSON writes what always can be written: texts, numbers, times of this age, and lists of them.
func mustJSON(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
