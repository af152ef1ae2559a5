package load

import "time"

// Schema is the version of Run's JSON form.
const Schema = 1

// Run is the outcome of one workload on one engine.
type Run struct {
	Schema   int       `json:"schema"`
	Engine   string    `json:"engine"`
	Workload string    `json:"workload"`
	Started  time.Time `json:"started"`
	// Promise says in one line what an acknowledgement of this run means.
	Promise string `json:"promise"`
	Env     Env    `json:"env"`
	// Config lists the parameters in the order in which they are best read.
	Config []Param `json:"config"`
	// Seed makes bodies, sizes, places and random arrivals.
	Seed uint64 `json:"seed"`
	// Interrupted tells that the run ended early: it was measured until then,
	// and not, or not wholly, read back.
	Interrupted bool `json:"interrupted,omitempty"`
	// Ops are the kinds of operations that ran, the main one first.
	Ops   []Op  `json:"ops"`
	Usage Usage `json:"usage"`
	// Log is what the engine counted; nil if it counts nothing.
	Log *LogCounts `json:"log,omitempty"`
	// Lag is how far derived state was behind when the last message was
	// acknowledged; nil if the engine has none.
	Lag      *Lag   `json:"lag,omitempty"`
	Verified Verify `json:"verified"`
	// Notes are remarks for the reader, such as how producers waited.
	Notes []string `json:"notes,omitempty"`
}

// Param is one parameter of a run, printed as it is.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Op is one kind of operation of a run: append, get, tail (end to end), scan,
// open, and so on.
type Op struct {
	Name string `json:"name"`
	// Arrivals is closed, fixed or random; Rate what was asked for in records
	// a second, 0 in a closed loop.
	Arrivals string  `json:"arrivals,omitempty"`
	Rate     float64 `json:"rate,omitempty"`
	// Count is how many operations were measured, Records and Bytes (of
	// bodies) what they moved.
	Count int64 `json:"count"`
	// Unsent is how many messages were due and were not sent, because the
	// producers were so far behind that they gave up: the rate is more than
	// the log can do. In Latency, not in Count, each stands with how late it
	// was by then.
	Unsent        int64   `json:"unsent,omitempty"`
	Records       int64   `json:"records"`
	Bytes         int64   `json:"bytes"`
	Seconds       float64 `json:"seconds"`
	RecordsPerSec float64 `json:"records_per_s"`
	// MBPerSec counts bodies only, in 10^6 bytes.
	MBPerSec float64 `json:"mb_per_s"`
	// Latency runs from the intended start of an open loop, from the call in a
	// closed one. Service and WakeUp are there in open loops only.
	Latency Latency  `json:"latency_us"`
	Service *Latency `json:"service_us,omitempty"`
	WakeUp  *Latency `json:"wakeup_us,omitempty"`
	// Series is the run over time.
	Series []Point `json:"series,omitempty"`
}

// Latency is a distribution in microseconds. What took longer than five minutes
// counts as that.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	Min   float64 `json:"min"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	P9999 float64 `json:"p9999"`
	Max   float64 `json:"max"`
	// Curve is the whole distribution, rising.
	Curve []Quantile `json:"curve,omitempty"`
}

// Quantile is a point of a distribution: Q percent took at most Us.
type Quantile struct {
	Q  float64 `json:"q"`
	Us float64 `json:"us"`
}

// Point is what happened in one interval of a run.
type Point struct {
	// Seconds is when the interval ended, since the measuring began.
	Seconds       float64 `json:"s"`
	RecordsPerSec float64 `json:"records_per_s"`
	P50           float64 `json:"p50_us"`
	P99           float64 `json:"p99_us"`
	Max           float64 `json:"max_us"`
}

// Usage is what the whole process used while it was measured, generator and
// background work included. Fields that the system does not tell are 0.
type Usage struct {
	Seconds    float64 `json:"seconds"`
	UserCPU    float64 `json:"user_cpu_s"`
	SystemCPU  float64 `json:"system_cpu_s"`
	PeakRSS    int64   `json:"peak_rss_bytes"`
	MinorFault int64   `json:"minor_faults"`
	MajorFault int64   `json:"major_faults"`
	// Switches counts context switches of both kinds.
	Switches int64 `json:"context_switches"`
	// ReadCalls and WriteCalls are system calls that read and write, as the
	// kernel counts them. Reads and writes through a mapping, and syncs, are
	// not among them.
	ReadCalls  int64 `json:"read_calls"`
	WriteCalls int64 `json:"write_calls"`
	// DiskReadBytes and DiskWriteBytes are what had to be fetched from and
	// sent to the disk for this process, counted by the page (dirtied pages
	// count when they are dirtied).
	DiskReadBytes  int64  `json:"disk_read_bytes"`
	DiskWriteBytes int64  `json:"disk_write_bytes"`
	Allocs         uint64 `json:"allocs"`
	AllocBytes     uint64 `json:"alloc_bytes"`
	GCs            uint32 `json:"gcs"`

	AllocsPerRecord     float64 `json:"allocs_per_record"`
	WriteCallsPerRecord float64 `json:"write_calls_per_record"`
	// DiskBytesPerPayload is DiskWriteBytes over the bytes of all bodies.
	DiskBytesPerPayload float64 `json:"disk_bytes_per_payload_byte"`
}

// LogCounts is what an engine says it did while it was measured.
type LogCounts struct {
	Syncs   int64 `json:"syncs"`
	Commits int64 `json:"commits"`
	Writes  int64 `json:"writes"`
	Rolls   int64 `json:"rolls"`
	// Bytes is by how much the log grew.
	Bytes int64 `json:"bytes"`
	// Calls counts the engine's own operations on the file system by kind.
	// Each is a system call but mapwrite, a copy into a mapping.
	Calls map[string]int64 `json:"calls,omitempty"`

	RecordsPerSync float64 `json:"records_per_sync"`
	// CallsPerRecord is without mapwrite.
	CallsPerRecord float64 `json:"calls_per_record,omitempty"`
	// BytesPerPayload is the bytes written by calls and into mappings, zeros
	// ahead of the tail and derived files included, over the bytes of all
	// bodies.
	BytesPerPayload float64 `json:"bytes_per_payload_byte,omitempty"`
}

// Lag is how far derived state was behind.
type Lag struct {
	// Bytes of the log that were appended and could not be found through
	// their queue yet when the last message was acknowledged, and how long it
	// took until they could.
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// Verify is what was read back.
type Verify struct {
	// OK tells that everything acknowledged was read and found right.
	OK bool `json:"ok"`
	// Records is how many were found right; Retired how many were not looked
	// for, because retention had taken them.
	Records int64   `json:"records"`
	Retired int64   `json:"retired,omitempty"`
	Missing int64   `json:"missing"`
	Wrong   int64   `json:"wrong"`
	First   string  `json:"first,omitempty"`
	Seconds float64 `json:"seconds"`
	// How says what was compared.
	How string `json:"how"`
}

// Env is the machine and the program.
type Env struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	Memory     int64  `json:"memory_bytes"`
	Kernel     string `json:"kernel"`
	// FileSystem is the type of the one that holds the log, with the options
	// it is mounted with.
	FileSystem string `json:"file_system"`
	Go         string `json:"go"`
	Arch       string `json:"arch"`
	// Commit is the revision of the program, "+dirty" behind it if the tree
	// was changed; empty if it was built without.
	Commit  string `json:"commit,omitempty"`
	Version string `json:"version,omitempty"`
}
