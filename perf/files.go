package perf

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
)

// RootTopic is the topic of the files at the top of a directory.
const RootTopic = "root"

// maxTopic is the longest topic that the store takes.
const maxTopic = 127

// File is a regular file that becomes a message.
type File struct {
	// Path is relative to the directory, with forward slashes; it is the
	// message's key.
	Path  string
	Topic string
	Size  int64
}

// Files lists the regular files below dir, sorted by path, and counts what is
// there beside them and directories (links, devices). dir itself may be a link.
func Files(dir string) (files []File, others int, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, 0, err
	}
	if !info.IsDir() {
		return nil, 0, &fs.PathError{Op: "list", Path: dir, Err: syscall.ENOTDIR}
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, 0, err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			others++
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		files = append(files, File{Path: rel, Topic: TopicOf(rel), Size: info.Size()})
		return nil
	})
	return files, others, err
}

// TopicOf returns the topic of a file: the first element of its path with every
// byte replaced that a topic name may not hold, RootTopic for a file at the top.
func TopicOf(path string) string {
	first, _, below := strings.Cut(path, "/")
	if !below {
		return RootTopic
	}
	legal := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '%', c == '|':
			return c
		}
		return '_'
	}, first)
	return legal[:min(len(legal), maxTopic)]
}

// Message makes m the message of f, read from below dir into m's body. Keys
// with bytes that the format reserves are refused by the store.
func (f File) Message(dir string, m *stratalog.Message) error {
	body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Path)))
	if err != nil {
		return err
	}
	m.Topic, m.Body = f.Topic, body
	m.Properties = codec.AppendProperty(m.Properties[:0], KeyProperty, f.Path)
	return nil
}

// The names of the properties that hold a message's key and tag.
const (
	KeyProperty = "KEYS"
	TagProperty = "TAGS"
)
