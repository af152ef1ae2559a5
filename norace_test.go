//go:build !race

package stratalog

const raceEnabled = false
