//go:build race

package stratalog

const raceEnabled = true
