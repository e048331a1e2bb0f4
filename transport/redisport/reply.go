package redisport

import (
	"strconv"
	"strings"

	"github.com/tidwall/redcon"
)

// reply is an answer in the making, in the protocol that the client has chosen by HELLO.
type reply struct {
	b     []byte
	resp3 bool
}

func (r *reply) ok() { r.status("OK") }

func (r *reply) status(text string) { r.b = redcon.AppendString(r.b, text) }

func (r *reply) integer(n int64) { r.b = redcon.AppendInt(r.b, n) }

func (r *reply) bulk(text string) { r.b = redcon.AppendBulkString(r.b, text) }

func (r *reply) array(n int) { r.b = redcon.AppendArray(r.b, n) }

// err writes an error with its kind, such as "ERR syntax error". Line breaks would end it early.
func (r *reply) err(text string) {
	text = strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
	r.b = append(append(append(r.b, '-'), text...), "\r\n"...)
}

// null says that there is nothing.
func (r *reply) null() {
	if r.resp3 {
		r.b = append(r.b, "_\r\n"...)
		return
	}
	r.b = redcon.AppendNull(r.b)
}

// pairs begins a map of n names with their values.
func (r *reply) pairs(n int) {
	if r.resp3 {
		r.header('%', n)
		return
	}
	r.array(2 * n)
}

// setOf begins n texts that are in no order.
func (r *reply) setOf(n int) {
	if r.resp3 {
		r.header('~', n)
		return
	}
	r.array(n)
}

// text is for people.
func (r *reply) text(text string) {
	if !r.resp3 {
		r.bulk(text)
		return
	}
	r.header('=', len(text)+len("txt:"))
	r.b = append(append(append(r.b, "txt:"...), text...), "\r\n"...)
}

func (r *reply) header(kind byte, n int) {
	r.b = append(strconv.AppendInt(append(r.b, kind), int64(n), 10), "\r\n"...)
}
