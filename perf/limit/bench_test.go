package limit

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	for _, producers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(producers), func(b *testing.B) {
			l, err := Open(filepath.Join(b.TempDir(), "log"), 2<<30, Options{})
			if err != nil {
				b.Fatal(err)
			}
			body := make([]byte, 1024)
			b.ReportAllocs()
			b.ResetTimer()
			before := l.Syncs()
			var wg sync.WaitGroup
			for p := range producers {
				wg.Go(func() {
					for range (b.N*(p+1))/producers - b.N*p/producers {
						if err := l.Append(body); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
			b.ReportMetric(float64(b.N)/float64(l.Syncs()-before), "rec/sync")
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
