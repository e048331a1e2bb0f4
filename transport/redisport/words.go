package redisport

import "encoding/hex"

// splitWords takes a line apart as Redis does: words between white space, in "double quotes" with \n \r \t \b \a \xHH
// and \" in them, or in 'single quotes' with \'. A closing quote ends its word. balanced is false where one is missing or
// something follows one.
func splitWords(line []byte) (words [][]byte, balanced bool) {
	for {
		for len(line) > 0 && isSpace(line[0]) {
			line = line[1:]
		}
		if len(line) == 0 {
			return words, true
		}
		word, rest, ok := nextWord(line)
		if !ok {
			return nil, false
		}
		words, line = append(words, word), rest
	}
}

func nextWord(line []byte) (word, rest []byte, ok bool) {
	word = []byte{}
	for len(line) > 0 {
		switch c := line[0]; {
		case isSpace(c) || c == 0:
			return word, line[1:], true
		case c == '"' || c == '\'':
			part, rest, ok := quoted(line[1:], c)
			if !ok || len(rest) > 0 && !isSpace(rest[0]) {
				return nil, nil, false
			}
			return append(word, part...), rest, true
		default:
			word, line = append(word, c), line[1:]
		}
	}
	return word, nil, true
}

// quoted reads up to the closing quote.
func quoted(line []byte, quote byte) (part, rest []byte, ok bool) {
	for len(line) > 0 {
		switch {
		case line[0] == quote:
			return part, line[1:], true
		case line[0] != '\\' || len(line) == 1:
			part, line = append(part, line[0]), line[1:]
		default:
			c, length := escaped(line, quote)
			part, line = append(part, c), line[length:]
		}
	}
	return nil, nil, false
}

// escaped reads one character that begins with a backslash; there is one more character behind it.
func escaped(line []byte, quote byte) (c byte, length int) {
	if quote == '\'' {
		if line[1] == '\'' {
			return '\'', 2
		}
		return '\\', 1
	}
	if line[1] == 'x' && len(line) >= 4 {
		var b [1]byte
		if _, err := hex.Decode(b[:], line[2:4]); err == nil {
			return b[0], 4
		}
	}
	switch line[1] {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'a':
		return '\a', 2
	}
	return line[1], 2
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
