//go:build !linux

package load

func countSystem(*counters) {}
func resetPeak()            {}
func peakRSS() int64        { return 0 }
