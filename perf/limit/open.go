package limit

import (
	"encoding/binary"
	"errors"
	"os"
)

// Open opens the log at path. A file that is not there is made, size bytes of
// zeros that are written and durable; one that is there keeps its size, is read
// from the start, and is cut behind the last whole record of the first run of
// them. What AppendNoSync wrote may, after a power cut, have holes; records
// behind one are gone, but only the next 4 MiB of them are erased.
func Open(path string, size int64, opt Options) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	l := &Log{file: file, opt: opt, done: make(chan struct{})}
	l.work.L, l.room.L = &l.mu, &l.mu
	if err := l.load(size); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	l.filling = newGroup(l.at)
	go l.run()
	return l, nil
}

// load makes or maps the file and finds its records.
func (l *Log) load(size int64) error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		size = info.Size()
	} else if err := fill(l.file, size); err != nil {
		return err
	}
	if l.mapped, err = mapFile(l.file, size); err != nil {
		return err
	}
	for {
		body, ok := record(l.mapped[l.at:])
		if !ok {
			break
		}
		l.starts = append(l.starts, l.at)
		l.at += int64(headerSize + len(body))
	}
	tail := l.mapped[l.at:min(l.at+maxStaged, size)]
	for _, b := range tail {
		if b != 0 {
			clear(tail)
			return dataSync(l.file)
		}
	}
	return nil
}

// fill writes size zeros to an empty file.
func fill(file *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := file.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	return file.Sync()
}

// record returns the body of the record at the start of b.
func record(b []byte) ([]byte, bool) {
	if len(b) < headerSize {
		return nil, false
	}
	size := binary.LittleEndian.Uint32(b)
	if int64(size) > int64(len(b)-headerSize) {
		return nil, false
	}
	body := b[headerSize : headerSize+size]
	return body, checksum(body) == binary.LittleEndian.Uint32(b[4:])
}

// Read returns body i, from 0, checked; it is valid until Close.
func (l *Log) Read(i int) ([]byte, error) {
	l.mu.Lock()
	if i < 0 || i >= len(l.starts) || l.closed {
		l.mu.Unlock()
		return nil, ErrBad
	}
	at := l.starts[i]
	l.mu.Unlock()
	body, ok := record(l.mapped[at:])
	if !ok {
		return nil, ErrBad
	}
	return body, nil
}

// Scan calls visit with each body, checked, in the order of the log, until it
// fails. Nothing may be appended meanwhile.
func (l *Log) Scan(visit func(body []byte) error) error {
	for at := int64(0); at < l.at; {
		body, ok := record(l.mapped[at:])
		if !ok {
			return ErrBad
		}
		if err := visit(body); err != nil {
			return err
		}
		at += int64(headerSize + len(body))
	}
	return nil
}
