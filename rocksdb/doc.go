// Package rocksdb is not built yet. It will be the stratum that keeps derived
// state (consume queues, key index, timers, transactions) in RocksDB, each
// family chosen by itself, while the log stays in its own files.
//
// It will compile everywhere. The files that need the native library will carry
// the build tag rocksdb; without it the engine answers with a typed error that
// names the build step. A program brings it in by importing this package and
// handing it to the store: the store itself never needs cgo.
package rocksdb
