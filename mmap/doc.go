// Package mmap owns fixed-size files: how they come to be (as spares that are
// allocated and zeroed before anybody needs them), how they are mapped, who
// may touch their bytes (leases), and how they leave (retirement).
//
// # Spares
//
// A spare is built under the spare directory with its full length allocated
// and every block written once with zeros and synced. Only then is it renamed
// to where it is used, so a file under its final name is always complete, and
// a write into it commits no file system metadata: a sync of written blocks
// takes about 0.6 of one that converts fresh extents. Names tell the state:
//
//	<n>.building   not known to be zero; zeroed again before use
//	<n>.ready      full length, zeros on disk
//
// # Leases
//
// A file is Active (reads, writes and maintenance), Sealed (no writes), or
// Closing (nothing new). State and lease count share one atomic word, so
// admission and close are single compare-and-swap steps:
//
//	(M1) a lease admitted before Closing stays valid until it is released;
//	(M2) nothing unmaps memory under a live lease, not even a close at a
//	     deadline;
//	(M3) the last lease out of a Closing file detaches it, exactly once.
package mmap
