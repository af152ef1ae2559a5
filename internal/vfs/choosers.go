package vfs

import "math/rand/v2"

// AllOld keeps nothing that no sync covers.
func AllOld() Chooser { return func(int, int, Item) int { return 0 } }

// AllNew keeps everything.
func AllNew() Chooser { return func(_, _ int, it Item) int { return it.Versions - 1 } }

// Random keeps each item old with probability 1-p, else one of its newer
// versions, each as likely as the other. The caller must not use rng at the
// same time.
func Random(rng *rand.Rand, p float64) Chooser {
	return func(_, _ int, it Item) int {
		if rng.Float64() >= p {
			return 0
		}
		return 1 + rng.IntN(it.Versions-1)
	}
}

// RandomGarbage is Random, but fills a sector that is not kept old with
// garbage, with probability g.
func RandomGarbage(rng *rand.Rand, p, g float64) Chooser {
	plain := Random(rng, p)
	return func(i, total int, it Item) int {
		v := plain(i, total, it)
		if v != 0 && it.Kind == ItemSector && rng.Float64() < g {
			return Garbage
		}
		return v
	}
}

// Mask keeps the newest version of item i if bit i of mask is set, else the
// old one; items from the 64th on stay old. With all masks below
// 1<<PendingCount() it goes through every choice between old and new.
func Mask(mask uint64) Chooser {
	return func(i, _ int, it Item) int {
		if i < 64 && mask>>i&1 != 0 {
			return it.Versions - 1
		}
		return 0
	}
}

// MaskGarbage is Mask, but a sector that Mask would keep old is garbage.
func MaskGarbage(mask uint64) Chooser {
	plain := Mask(mask)
	return func(i, total int, it Item) int {
		v := plain(i, total, it)
		if v == 0 && it.Kind == ItemSector {
			return Garbage
		}
		return v
	}
}

// Prefix keeps the newest version of the first k items, the rest old.
func Prefix(k int) Chooser {
	return func(i, _ int, it Item) int {
		if i < k {
			return it.Versions - 1
		}
		return 0
	}
}

// Hole keeps the newest version of all but item k, which stays old.
func Hole(k int) Chooser {
	return func(i, _ int, it Item) int {
		if i == k {
			return 0
		}
		return it.Versions - 1
	}
}

// GarbageHole is Hole, but if item k is a sector, it is garbage.
func GarbageHole(k int) Chooser {
	return func(i, _ int, it Item) int {
		switch {
		case i != k:
			return it.Versions - 1
		case it.Kind == ItemSector:
			return Garbage
		}
		return 0
	}
}
