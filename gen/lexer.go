package gen

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is a mistake in a schema, with the place where it was found.
type Error struct {
	// File is the name that was given to Generate.
	File string
	// Line and Col count from 1; Col counts bytes.
	Line, Col int
	// Msg says what was expected and what was found.
	Msg string
}

// Error returns "file:line:col: message".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// tokenKind is the kind of one token.
type tokenKind int

const (
	tokenEOF tokenKind = iota
	tokenNewline
	tokenIdent
	tokenInt
	tokenString
	tokenPunct
	tokenComment
)

// Where is a place in a schema. Line and Col count from 1; Col counts bytes.
type Where struct{ Line, Col int }

// token is one word of a schema.
type token struct {
	kind tokenKind
	// text is the word as written; of a string its unquoted value, of a
	// comment what follows the slashes.
	text string
	// raw is the word as it stands in the schema.
	raw   string
	value Number
	at    Where
}

// describe names the token for an error message.
func (t token) describe() string {
	switch t.kind {
	case tokenEOF:
		return "the end of the file"
	case tokenNewline:
		return "the end of the line"
	case tokenString:
		return "string " + strconv.Quote(t.text)
	case tokenComment:
		return "a comment"
	}
	return strconv.Quote(t.text)
}

// lexer cuts a schema into tokens. A line end is a token, since it ends a
// field.
type lexer struct {
	file string
	src  string
	pos  int
	at   Where
}

func (l *lexer) fail(at Where, format string, args ...any) error {
	return &Error{File: l.file, Line: at.Line, Col: at.Col, Msg: fmt.Sprintf(format, args...)}
}

// advance moves n bytes on within a line.
func (l *lexer) advance(n int) {
	l.pos += n
	l.at.Col += n
}

// tokens returns all tokens of the schema, the last one being tokenEOF.
func (l *lexer) tokens() ([]token, error) {
	l.at = Where{1, 1}
	var out []token
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		if t.kind == tokenEOF {
			return out, nil
		}
	}
}

func (l *lexer) next() (token, error) {
	for l.pos < len(l.src) && strings.IndexByte(" \t\r", l.src[l.pos]) >= 0 {
		l.advance(1)
	}
	start := l.at
	if l.pos == len(l.src) {
		return token{kind: tokenEOF, at: start}, nil
	}
	rest := l.src[l.pos:]
	c := rest[0]
	switch {
	case c == '\n':
		l.pos++
		l.at = Where{l.at.Line + 1, 1}
		return token{kind: tokenNewline, at: start}, nil
	case strings.HasPrefix(rest, "//"):
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		l.advance(end)
		text := strings.TrimRight(rest[2:end], " \t\r")
		return token{kind: tokenComment, text: strings.TrimPrefix(text, " "), raw: "//" + text, at: start}, nil
	case c == '"':
		return l.quoted(rest, start)
	case c == '\'':
		return l.character(rest, start)
	case isDigit(c) || c == '-':
		return l.integer(rest, start)
	case isLetter(c):
		n := 1
		for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n])) {
			n++
		}
		l.advance(n)
		return token{kind: tokenIdent, text: rest[:n], raw: rest[:n], at: start}, nil
	}
	for _, punct := range []string{"..", "==", "!=", ">=", "<=", "{", "}", "[", "]", "=", "|", "&", ","} {
		if strings.HasPrefix(rest, punct) {
			l.advance(len(punct))
			return token{kind: tokenPunct, text: punct, raw: punct, at: start}, nil
		}
	}
	return token{}, l.fail(start, "unexpected character %q", rune(c))
}

func (l *lexer) quoted(rest string, start Where) (token, error) {
	raw, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return token{}, l.fail(start, "expected a string in double quotes that ends on its line")
	}
	text, err := strconv.Unquote(raw)
	if err != nil {
		return token{}, l.fail(start, "expected a string in double quotes that ends on its line")
	}
	l.advance(len(raw))
	return token{kind: tokenString, text: text, raw: raw, at: start}, nil
}

// character reads a byte written as 'x'.
func (l *lexer) character(rest string, start Where) (token, error) {
	end := 2
	if strings.HasPrefix(rest, `'\`) {
		end = 3
	}
	for end < len(rest) && rest[end] != '\'' && rest[end] != '\n' {
		end++
	}
	end = min(end+1, len(rest))
	c, _, tail, err := strconv.UnquoteChar(rest[1:end], '\'')
	if err != nil || tail != "'" || c > 0xff {
		return token{}, l.fail(start, "expected one byte in single quotes")
	}
	l.advance(end)
	return token{kind: tokenInt, text: fmt.Sprintf("%#02x", c), raw: rest[:end], value: NumberOf(int64(c)), at: start}, nil
}

func (l *lexer) integer(rest string, start Where) (token, error) {
	n := 1
	for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n])) {
		n++
	}
	value, ok := parseNumber(rest[:n])
	if !ok {
		return token{}, l.fail(start, "expected an integer of at most 64 bits, found %q", rest[:n])
	}
	l.advance(n)
	return token{kind: tokenInt, text: rest[:n], raw: rest[:n], value: value, at: start}, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}
