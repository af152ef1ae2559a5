package main

import (
	"fmt"
	"strings"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/commitlog"
)

// choice is a flag that takes one of some words.
type choice[T fmt.Stringer] struct {
	value T
	from  []T
}

// newDurability is a durability flag.
func newDurability(d stratalog.Durability) *choice[stratalog.Durability] {
	return &choice[stratalog.Durability]{value: d, from: []stratalog.Durability{stratalog.Memory, stratalog.Interval, stratalog.Sync}}
}

// newWritePath is a write path flag.
func newWritePath() *choice[commitlog.WritePath] {
	return &choice[commitlog.WritePath]{value: stratalog.WriteAuto,
		from: []commitlog.WritePath{stratalog.WriteAuto, stratalog.WriteMmap, stratalog.WritePwrite}}
}

// String returns the word.
func (c *choice[T]) String() string { return c.value.String() }

// Set takes the word text.
func (c *choice[T]) Set(text string) error {
	for _, v := range c.from {
		if v.String() == text {
			c.value = v
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", text, strings.ReplaceAll(c.Type(), "|", ", "))
}

// Type lists the words.
func (c *choice[T]) Type() string {
	words := make([]string, len(c.from))
	for i, v := range c.from {
		words[i] = v.String()
	}
	return strings.Join(words, "|")
}
