package gen

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
	// tokenBad stands for the rest of a line that is no word of the language.
	tokenBad
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
	// err is what is wrong with tokenBad.
	err error
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

// byteOrderMark may stand at the start of a file. It means nothing.
const byteOrderMark = "\ufeff"

// tokens returns all tokens of the schema, the last one being tokenEOF.
func (l *lexer) tokens() []token {
	l.at = Where{1, 1}
	if strings.HasPrefix(l.src, byteOrderMark) {
		l.pos = len(byteOrderMark)
	}
	var out []token
	for {
		t, err := l.next()
		if err != nil {
			t = token{kind: tokenBad, text: l.line(), at: l.at, err: err}
			l.advance(len(t.text))
		}
		out = append(out, t)
		if t.kind == tokenEOF {
			return out
		}
	}
}

// line returns the rest of the line.
func (l *lexer) line() string {
	line, _, _ := strings.Cut(l.src[l.pos:], "\n")
	return line
}

func (l *lexer) loneReturn(at Where) error {
	return l.fail(at, "expected a line feed behind the carriage return: a line ends with LF or CR LF")
}

func (l *lexer) next() (token, error) {
	for l.pos < len(l.src) && strings.IndexByte(" \t\r", l.src[l.pos]) >= 0 {
		if l.src[l.pos] == '\r' && !strings.HasPrefix(l.src[l.pos:], "\r\n") {
			return token{}, l.loneReturn(l.at)
		}
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
		line := strings.TrimSuffix(l.line(), "\r")
		if i := strings.IndexByte(line, '\r'); i >= 0 {
			return token{}, l.loneReturn(Where{start.Line, start.Col + i})
		}
		l.advance(len(line))
		text := strings.TrimRight(line[2:], " \t")
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
	char, _ := utf8.DecodeRuneInString(rest)
	return token{}, l.fail(start, "unexpected character %q", char)
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
