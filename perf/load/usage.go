package load

import (
	"runtime"
	"time"
)

// Meter measures what the process uses between Start and Stop.
type Meter struct {
	began time.Time
	from  counters
	to    counters
	took  time.Duration // 0 until Mark
	peak  int64
}

// counters is what the system and the runtime have counted so far.
type counters struct {
	user, system           time.Duration
	minor, major, switches int64
	readCalls, writeCalls  int64
	diskRead, diskWrite    int64
	allocs, allocBytes     uint64
	gcs                    uint32
}

// StartMeter begins to measure. The peak of memory begins anew where the system
// allows it, which makes one process able to measure several engines.
func StartMeter() *Meter {
	resetPeak()
	m := &Meter{from: count()}
	m.began = time.Now()
	return m
}

// Mark ends the measuring; what is used from here on does not count.
func (m *Meter) Mark() { m.took, m.to, m.peak = time.Since(m.began), count(), peakRSS() }

// Stop returns what was used from the start to Mark, or to now without one, for
// so many records with so many bytes of bodies.
func (m *Meter) Stop(records, payload int64) Usage {
	if m.took == 0 {
		m.Mark()
	}
	took, to, from := m.took, m.to, m.from
	u := Usage{
		Seconds: round(took.Seconds(), 6),
		UserCPU: round((to.user - from.user).Seconds(), 6), SystemCPU: round((to.system - from.system).Seconds(), 6),
		PeakRSS:    m.peak,
		MinorFault: to.minor - from.minor, MajorFault: to.major - from.major, Switches: to.switches - from.switches,
		ReadCalls: to.readCalls - from.readCalls, WriteCalls: to.writeCalls - from.writeCalls,
		DiskReadBytes: to.diskRead - from.diskRead, DiskWriteBytes: to.diskWrite - from.diskWrite,
		Allocs: to.allocs - from.allocs, AllocBytes: to.allocBytes - from.allocBytes, GCs: to.gcs - from.gcs,
	}
	u.AllocsPerRecord = Per(float64(u.Allocs), records)
	u.WriteCallsPerRecord = Per(float64(u.WriteCalls), records)
	u.DiskBytesPerPayload = Per(float64(u.DiskWriteBytes), payload)
	return u
}

// count reads all counters.
func count() counters {
	var c counters
	countSystem(&c)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.allocs, c.allocBytes, c.gcs = m.Mallocs, m.TotalAlloc, m.NumGC
	return c
}
