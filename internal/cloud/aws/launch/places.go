package launch

import (
	"encoding/base64"
	"slices"
)

// places are places of a purchase, ascending: the first instance is for the claim in the first of them, and so on. Nil is
// all of them.
type places []int

// text is a bit per place, the lowest first, in base64: at most 167 characters for 1,000 places. Empty for all.
func (p places) text() string {
	if len(p) == 0 {
		return ""
	}
	bits := make([]byte, p[len(p)-1]/8+1)
	for _, place := range p {
		bits[place/8] |= 1 << (place % 8)
	}
	return base64.RawStdEncoding.EncodeToString(bits)
}

// placesOf is the inverse. A text that is none means all.
func placesOf(text string) places {
	bits, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	var p places
	for i := range len(bits) * 8 {
		if bits[i/8]&(1<<(i%8)) != 0 {
			p = append(p, i)
		}
	}
	return p
}

// index is which instance, by id, is for a place; false if none was bought for it.
func (p places) index(place int) (int, bool) {
	if p == nil {
		return place, true
	}
	return slices.BinarySearch(p, place)
}

// among are the places of the claims that have the token on record, and some more; nil if that is all of them.
func among(entries map[string]Entry, of Entry, more ...int) places {
	p := places(slices.Clone(more))
	for _, e := range entries {
		if e.Token() == of.Token() {
			p = append(p, e.Place)
		}
	}
	p = append(p, of.Place)
	slices.Sort(p)
	if p = slices.Compact(p); len(p) == of.Size {
		return nil
	}
	return p
}

// and are the places that are in both, of so many.
func (p places) and(q places, of int) places {
	var both places
	for place := range of {
		if _, in := p.index(place); !in {
			continue
		}
		if _, in := q.index(place); in {
			both = append(both, place)
		}
	}
	if len(both) == of {
		return nil
	}
	return both
}
