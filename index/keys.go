package index

import (
	"bytes"
	"math"

	"github.com/stratalog/stratalog/codec"
)

// tagInfix stands between topic and tag in the text that is hashed for a tag.
const tagInfix = "#T#"

// keyer finds the keys of records. It reuses its memory.
type keyer struct {
	text   []byte
	hashes []int32
}

// of returns the hashes of the record's keys, in the order of their entries:
// the unique key, the words of KEYS, and the tags, which tagged says are there.
// The result is valid until the next call.
func (k *keyer) of(rec *codec.MessageView) (hashes []int32, tagged bool) {
	k.hashes = k.hashes[:0]
	var unique, keys, tags []byte
	codec.WalkProperties(rec.Properties(), func(name, value []byte) bool {
		switch string(name) {
		case codec.PropertyUniqueKey:
			unique = value
		case codec.PropertyKeys:
			keys = value
		case codec.PropertyTags:
			tags = value
		}
		return true
	})
	topic := rec.Topic()
	if len(unique) > 0 {
		k.add(topic, "#", unique)
	}
	for len(keys) > 0 {
		var word []byte
		if word, keys = nextWord(keys); len(word) > 0 {
			k.add(topic, "#", word)
		}
	}
	if len(tags) > 0 {
		k.add(topic, tagInfix, tags)
	}
	return k.hashes, len(tags) > 0
}

func (k *keyer) add(topic []byte, infix string, key []byte) {
	k.text = append(append(append(k.text[:0], topic...), infix...), key...)
	k.hashes = append(k.hashes, positive(codec.JavaHash(k.text)))
}

func nextWord(keys []byte) (word, rest []byte) {
	if i := bytes.IndexByte(keys, ' '); i >= 0 {
		return keys[:i], keys[i+1:]
	}
	return keys, nil
}

// positive takes the sign off a hash, as Java does: the one number without a
// positive counterpart becomes 0.
func positive(hash int32) int32 {
	switch {
	case hash == math.MinInt32:
		return 0
	case hash < 0:
		return -hash
	}
	return hash
}

// keyHash is the hash of a key that is asked for. It returns the memory that it
// used, to be used again.
func keyHash(text []byte, topic, key string, tag bool) (int32, []byte) {
	text = append(text[:0], topic...)
	if tag {
		text = append(text, tagInfix...)
	} else {
		text = append(text, '#')
	}
	text = append(text, key...)
	return positive(codec.JavaHash(text)), text
}

// Matches reports whether the record is of the topic and has the key: as its
// UNIQ_KEY or one of the words of its KEYS, or, with tag set, as its TAGS. An
// entry has only a hash, so whoever searches asks this of each record.
func Matches(rec *codec.MessageView, topic, key string, tag bool) bool {
	if string(rec.Topic()) != topic {
		return false
	}
	if tag {
		tags, _ := codec.FindProperty(rec.Properties(), codec.PropertyTags)
		return string(tags) == key && key != ""
	}
	if unique, _ := codec.FindProperty(rec.Properties(), codec.PropertyUniqueKey); len(unique) > 0 && string(unique) == key {
		return true
	}
	keys, _ := codec.FindProperty(rec.Properties(), codec.PropertyKeys)
	for len(keys) > 0 {
		var word []byte
		if word, keys = nextWord(keys); len(word) > 0 && string(word) == key {
			return true
		}
	}
	return false
}
