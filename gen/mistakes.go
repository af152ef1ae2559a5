package gen

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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

// Errors are several mistakes: those of one schema in the order of their places.
// What only follows from another mistake is not among them.
type Errors []*Error

// shownErrors is the number of mistakes that Error names.
const shownErrors = 10

// Error returns one line for each of the first ten mistakes, and the number of
// those behind them.
func (e Errors) Error() string {
	var lines []string
	for _, x := range e[:min(len(e), shownErrors)] {
		lines = append(lines, x.Error())
	}
	switch more := len(e) - shownErrors; {
	case more == 1:
		lines = append(lines, "and 1 mistake more")
	case more > 1:
		lines = append(lines, fmt.Sprintf("and %d mistakes more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes.
func (e Errors) Unwrap() []error {
	var out []error
	for _, x := range e {
		out = append(out, x)
	}
	return out
}

// mistakes collects what is wrong with one schema.
type mistakes struct{ list Errors }

// errTold is an error that mistakes holds already, or one that follows from
// those.
var errTold = errors.New("gen: told already")

// add takes a mistake; err is an *Error, errTold or nil. It says whether err was
// none.
func (m *mistakes) add(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		m.list = append(m.list, e)
	}
	return err == nil
}

// errorOf returns mistakes as an error: nil, an *Error or Errors.
func errorOf(list Errors) error {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return list
}

// sorted returns the mistakes in the order of their places, each once.
func (m *mistakes) sorted() Errors {
	slices.SortStableFunc(m.list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return slices.CompactFunc(m.list, func(a, b *Error) bool { return *a == *b })
}

// appendError appends the mistakes of err to list.
func appendError(list Errors, err error) Errors {
	var all Errors
	var one *Error
	switch {
	case errors.As(err, &all):
		return append(list, all...)
	case errors.As(err, &one):
		return append(list, one)
	}
	return list
}
