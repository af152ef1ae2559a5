package stratalog_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/stratalog/stratalog"
)

// A broker embeds the store: open, append, read back by queue offset.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "stratalog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := stratalog.Open(ctx, stratalog.Options{Dir: dir, SegmentSize: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Start(ctx); err != nil {
		log.Fatal(err)
	}
	receipt, err := store.Append(ctx, &stratalog.Message{Topic: "orders", Body: []byte("hello")}, stratalog.Sync)
	if err != nil {
		log.Fatal(err) // the receipt tells what is known of the bytes
	}
	place, _ := receipt.Range()
	err = store.WaitVisible(ctx, place.End)

	var records stratalog.Records // reused from call to call
	err = errors.Join(err, store.Get(ctx, stratalog.Request{Topic: "orders", Offset: receipt.QueueOffset()}, &records))
	if err != nil || records.Len() == 0 {
		log.Fatal(records.Status, err)
	}
	fmt.Println(records.Status, receipt.Reached(), string(records.At(0).Body()))
	records.Release()
	report, err := store.Close(ctx)
	fmt.Println(report.Clean, err)
	// Output:
	// Found local hello
	// true <nil>
}
