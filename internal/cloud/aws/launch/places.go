package launch

import (
	"encoding/base64"
	"slices"
)

// places are places of a fleet launch, ascending. The first instance belongs to the claim in the first place, and so
// on. Nil means all places.
type places []int

// text encodes one bit per place, the lowest first, in base64: at most 167 characters for 1,000 places. It returns an
// empty string for all.
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

// placesOf is the inverse of text. An invalid text means all.
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

// index returns the index of the instance, by ID, for a place. It returns false if the request is not for that place.
func (p places) index(place int) (int, bool) {
	if p == nil {
		return place, true
	}
	return slices.BinarySearch(p, place)
}

// among returns the places of the claims that have the token on record, plus the given ones. It returns nil if these
// are all places.
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

// and returns the places in both sets, out of the given number.
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
