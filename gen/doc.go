// Package gen turns a layout schema (*.layout) into Go codecs.
//
// A schema is the one source of a layout: it says which fields a record has,
// in which order and width, which lengths are bounded by what, and what is
// covered by a checksum. From it Generate makes, for each record, a struct
// with Encode, a view with one accessor per field and a validating Parse,
// setters for the fields that are known late, and the tests, fuzz targets and
// benchmarks that go with them.
//
// The work is done in three steps, each in its own files:
//
//	text  --lexer, parser-->  syntax tree  --check-->  Record (IR)  --emitters-->  Go source
//
// Only the checker decides places and sizes; the emitters print what the IR
// says. The language is described in README.md of this folder.
package gen
