package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/conformance/javapeer"
)

// TestKeys has each side find by key what the other wrote, in the index that the
// other made, and compares the files.
func TestKeys(t *testing.T) {
	runCases(t, []testCase{
		{group: "a", name: "key-query", run: javaKeys},
		{group: "b", name: "key-query", run: ourKeys},
		{group: "c", name: "key-turns", run: keyTurns},
		{group: "d", name: "key-query-killed", run: javaKeysKilled},
		{group: "e", name: "index-files", run: indexFiles},
	})
}

// keyed have keys that collide, repeat, and come in several.
func keyed() [][]stratalog.Message {
	return several(60, func(i int, m *stratalog.Message) {
		m.Properties = props("UNIQ_KEY", fmt.Sprintf("u%d", i), "KEYS", []string{"Aa", "BB", "one two", "x  y", "same same"}[i%5], "TAGS", "t")
	})
}

// manyKeyed fill several index files.
func manyKeyed() [][]stratalog.Message {
	return several(700, func(i int, m *stratalog.Message) {
		m.Properties = props("UNIQ_KEY", fmt.Sprintf("u%d", i), "KEYS", fmt.Sprintf("k%d schlüssel%d 𝄞", i%40, i%7), "TAGS", []string{"t1", "t2"}[i%2])
		if i%9 == 0 {
			m.SysFlag = int32([]codec.SysFlag{codec.SysFlagTransactionPrepared, codec.SysFlagTransactionCommit, codec.SysFlagTransactionRollback}[i/9%3])
		}
	})
}

// wantKeys are the places of the records of all with a key, newest first. Java
// gives at most 64.
func wantKeys(all []sent, topic, key string) []int64 {
	var places []int64
	for _, sent := range slices.Backward(all) {
		m := sent.m
		unique, _ := codec.FindProperty(m.Properties, codec.PropertyUniqueKey)
		keys, _ := codec.FindProperty(m.Properties, codec.PropertyKeys)
		if m.Topic == topic && codec.SysFlag(m.SysFlag)&codec.SysFlagTransaction != codec.SysFlagTransactionRollback &&
			(string(unique) == key || slices.Contains(strings.Split(string(keys), " "), key)) {
			places = append(places, sent.phy)
		}
	}
	return places
}

// someKeys are keys of which each side is asked.
var someKeys = []string{"u0", "u7", "u59", "Aa", "BB", "one", "two", "x", "y", "same", "k3", "k39", "schlüssel5", "none"}

// javaFinds has Java find messages by key. It looks at 64 entries at most, and
// does not tell keys of one hash apart.
func javaFinds(e *env, store *javapeer.Store, all []sent) error {
	for _, key := range someKeys {
		want := wantKeys(all, "kinds", key)
		if len(want) > 60 || key == "Aa" || key == "BB" || key == "same" {
			continue
		}
		got, err := store.Query(e.ctx, "kinds", key)
		if err != nil {
			return err
		}
		var places []int64
		for _, r := range got {
			places = append(places, r.Phy)
		}
		slices.Sort(places)
		slices.Reverse(places)
		if !slices.Equal(places, want) {
			return fmt.Errorf("java finds %v by key %q, want %v", places, key, want)
		}
	}
	return nil
}

// querying is what a Store and a Reader have in common here.
type querying interface {
	QueryKey(ctx context.Context, q stratalog.Query, out *stratalog.Matches) error
}

func weFind(ctx context.Context, s querying, all []sent) error {
	var out stratalog.Matches
	defer out.Release()
	for _, key := range someKeys {
		var got []int64
		q := stratalog.Query{Topic: "kinds", Key: key}
		for out.More = true; out.More; q.After = out.Next {
			if err := s.QueryKey(ctx, q, &out); err != nil {
				return fmt.Errorf("key %q: %w", key, err)
			}
			for i := range out.Len() {
				got = append(got, out.At(i).PhysicalOffset())
			}
		}
		if want := wantKeys(all, "kinds", key); !slices.Equal(got, want) {
			return fmt.Errorf("we find %v by key %q, want %v", got, key, want)
		}
	}
	return nil
}

// weFindIn opens dir for reading and for writing, and has both find all.
func weFindIn(e *env, opt stratalog.Options, all []sent) error {
	// What Java appended lies beyond the bound that we published.
	r, err := stratalog.OpenReader(e.ctx, opt, stratalog.ReaderOptions{Appended: true})
	if err != nil {
		return err
	}
	if err := errors.Join(weFind(e.ctx, r, all), verified(e.ctx, r), r.Close()); err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	store, err := openOurs(e.ctx, opt)
	if err != nil {
		return err
	}
	if err := errors.Join(weFind(e.ctx, store, all), closeOurs(e.ctx, store)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return e.verifiedDir(opt)
}

// javaKeys: Java writes keys, and we find them in Java's index, and in our own.
func javaKeys(e *env) error {
	s := usual()
	dir := e.dir()
	store, err := e.openJava(e.java, dir, s)
	if err != nil {
		return err
	}
	all, err := e.javaPuts(store, append(keyed(), manyKeyed()...))
	if err == nil {
		err = store.Wait(e.ctx)
	}
	if err == nil {
		err = javaFinds(e, store, all)
	}
	if err = errors.Join(err, store.Shutdown(e.ctx)); err != nil {
		return err
	}
	opt := s.options(dir)
	opt.IndexSlots, opt.IndexEntries = 0, 0 // They are found out.
	return weFindIn(e, opt, all)
}

// javaKeysKilled: what Java's index holds when it dies.
func javaKeysKilled(e *env) error {
	s := usual()
	dir := e.dir()
	var all []sent
	if err := e.crashed(dir, s, func(store *javapeer.Store) (err error) {
		if all, err = e.javaPuts(store, append(keyed(), manyKeyed()...)); err == nil {
			err = store.Wait(e.ctx)
		}
		return err
	}); err != nil {
		return err
	}
	return weFindIn(e, s.options(dir), all)
}

// ourKeys: we write keys, and Java finds them in our index.
func ourKeys(e *env) error {
	s := usual()
	dir := e.dir()
	all, _, err := e.weWrite(s.options(dir), append(keyed(), manyKeyed()...), nil, nil)
	if err != nil {
		return err
	}
	store, err := e.openJava(e.java, dir, s)
	if err != nil {
		return err
	}
	return errors.Join(javaFinds(e, store, all), store.Shutdown(e.ctx))
}

// keyTurns: both sides go on with the index of the other.
func keyTurns(e *env) error {
	s := usual()
	dir := e.dir()
	var all []sent
	for turn := range 4 {
		groups := several(90, func(i int, m *stratalog.Message) {
			m.Properties = props("UNIQ_KEY", fmt.Sprintf("u%d", 90*turn+i), "KEYS", fmt.Sprintf("k%d one", i%40))
		})
		var more []sent
		var err error
		if turn%2 == 0 {
			more, _, err = e.weWrite(s.options(dir), groups, nil, nil)
		} else {
			more, _, err = e.javaWrites(dir, s, groups)
		}
		if err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
		all = append(all, more...)
		if err := weFindIn(e, s.options(dir), all); err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
		store, err := e.openJava(e.java, dir, s)
		if err != nil {
			return err
		}
		if err := errors.Join(javaFinds(e, store, all), store.Shutdown(e.ctx)); err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
	}
	return nil
}

// indexFiles compares the index that we make of Java's log with Java's, byte for
// byte. Left out are the names, which are times of creation, and the place of
// entry 0, which is never used.
func indexFiles(e *env) error {
	s := usual()
	java, ours := e.dir(), e.dir()
	if _, _, err := e.javaWrites(java, s, append(keyed(), manyKeyed()...)); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(ours, "commitlog"), os.DirFS(filepath.Join(java, "commitlog"))); err != nil {
		return err
	}
	opt := s.options(ours)
	opt.IndexTags = e.version != "5.3.3"
	store, err := openOurs(e.ctx, opt)
	if err != nil {
		return err
	}
	if err := closeOurs(e.ctx, store); err != nil {
		return err
	}
	want, err := ordered(java)
	if err != nil {
		return err
	}
	got, err := ordered(ours)
	if err != nil {
		return err
	}
	if len(got) != len(want) || len(got) < 3 {
		return fmt.Errorf("%d files, java has %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			return fmt.Errorf("file %d: %s", i, firstDifference(got[i], want[i]))
		}
	}
	return nil
}

// ordered returns the index files of dir, in order of their names.
func ordered(dir string) ([][]byte, error) {
	all, err := files(dir, "index")
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	var out [][]byte
	for _, name := range names {
		b := all[name]
		unused := codec.IndexHeaderSize + indexSlots*codec.IndexSlotSize
		clear(b[unused : unused+codec.IndexEntrySize])
		out = append(out, b)
	}
	return out, nil
}
