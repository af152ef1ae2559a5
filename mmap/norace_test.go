//go:build !race

package mmap

const raceEnabled = false
