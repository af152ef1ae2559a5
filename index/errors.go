package index

import (
	"errors"

	"github.com/stratalog/stratalog/contract"
)

// The causes that a *contract.CorruptionError of this package carries.
var (
	// ErrChain is the cause when a chain cannot be: it leads to an entry of
	// another slot, or to one that is not older.
	ErrChain = errors.New("chain of the key index leads astray")
	// ErrEntry is the cause when an entry holds what none can.
	ErrEntry = errors.New("impossible entry of the key index")
	// ErrHeader is the cause when a header does not fit its file.
	ErrHeader = errors.New("impossible header of a key index file")
	// ErrFileLength is the cause when a file's length is not that of its
	// slots and entries.
	ErrFileLength = errors.New("key index file of another length than configured")
)

func ioError(op contract.Operation, what string, cause error) error {
	return contract.NewError(contract.KindIO, op, contract.ComponentIndex, what, cause)
}

func damaged(f *file, at int64, cause error) error {
	return &contract.CorruptionError{File: f.path, Offset: at, Cause: cause}
}
