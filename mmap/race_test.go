//go:build race

package mmap

const raceEnabled = true
