package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Arrivals is when messages are due.
type Arrivals int

const (
	// Closed: a producer sends when its message before was answered.
	Closed Arrivals = iota
	// Fixed: at even distances, producers staggered.
	Fixed
	// Random: at exponentially distributed distances, as independent clients
	// arrive (a Poisson process).
	Random
)

// String returns closed, fixed or random.
func (a Arrivals) String() string {
	switch a {
	case Closed:
		return "closed"
	case Fixed:
		return "fixed"
	case Random:
		return "random"
	}
	return fmt.Sprintf("Arrivals(%d)", int(a))
}

// Schedule is when the messages of one producer are due.
type Schedule struct {
	arrivals Arrivals
	gap      float64 // nanoseconds between two messages of the producer, mean
	next     float64 // when the next is due, since the start
	rng      *rand.Rand
}

// NewSchedule returns the schedule of producer p of so many, which together send
// rate messages a second.
func NewSchedule(arrivals Arrivals, rate float64, producers, p int, seed uint64) *Schedule {
	s := &Schedule{arrivals: arrivals}
	if arrivals == Closed {
		return s
	}
	s.gap = 1e9 * float64(producers) / rate
	s.rng = rand.New(rand.NewPCG(seed, mix(uint64(p)+1)))
	if arrivals == Fixed {
		s.next = s.gap * float64(p) / float64(producers)
	} else {
		s.next = s.gap * s.rng.ExpFloat64()
	}
	return s
}

// Next returns when the next message is due, since the start of the run, and
// goes on to the one after it. It never looks at a clock.
func (s *Schedule) Next() time.Duration {
	due := s.next
	if s.arrivals == Random {
		s.next += s.gap * s.rng.ExpFloat64()
	} else {
		s.next += s.gap
	}
	return time.Duration(math.Min(due, math.MaxInt64/2))
}

const golden = 0x9E3779B97F4A7C15

// mix is the finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
