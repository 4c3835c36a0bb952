package launch

import (
	"encoding/base64"
	"slices"
)

// indexSet holds indexes of claims in a fleet launch, ascending. The first instance belongs to the claim with index
// index, and so on. Nil means all indexes.
type indexSet []int

// text encodes one bit per index, the lowest first, in base64: at most 167 characters for 1,000 indexes. It returns an
// empty string for all.
func (p indexSet) text() string {
	if len(p) == 0 {
		return ""
	}
	bits := make([]byte, p[len(p)-1]/8+1)
	for _, index := range p {
		bits[index/8] |= 1 << (index % 8)
	}
	return base64.RawStdEncoding.EncodeToString(bits)
}

// indexSetOf is the inverse of text. An invalid text means all.
func indexSetOf(text string) indexSet {
	bits, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	var p indexSet
	for i := range len(bits) * 8 {
		if bits[i/8]&(1<<(i%8)) != 0 {
			p = append(p, i)
		}
	}
	return p
}

// index returns the index of the instance, by ID, for an index. It returns false if the request is not for that index.
func (p indexSet) index(index int) (int, bool) {
	if p == nil {
		return index, true
	}
	return slices.BinarySearch(p, index)
}

// indexesOf returns the indexes of the claims that have the token on record, plus the given ones. It returns nil if
// these are all indexes.
func indexesOf(records map[string]Record, of Record, more ...int) indexSet {
	p := indexSet(slices.Clone(more))
	for _, e := range records {
		if e.Token() == of.Token() {
			p = append(p, e.Index)
		}
	}
	p = append(p, of.Index)
	slices.Sort(p)
	if p = slices.Compact(p); len(p) == of.Size {
		return nil
	}
	return p
}

// intersect returns the indexes in both sets, out of the given number.
func (p indexSet) intersect(q indexSet, of int) indexSet {
	var both indexSet
	for index := range of {
		if _, in := p.index(index); !in {
			continue
		}
		if _, in := q.index(index); in {
			both = append(both, index)
		}
	}
	if len(both) == of {
		return nil
	}
	return both
}
