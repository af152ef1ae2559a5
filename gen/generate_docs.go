package gen

// The pages and Kaitai files of the store's own layouts.
//
//go:generate go run ./cmd/layoutgen -in ../codec/*.layout -docs ../docs/format -ksy ../docs/format/ksy
