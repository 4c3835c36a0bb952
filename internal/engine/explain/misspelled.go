package explain

import (
	"maps"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// mostSlips is the maximum number of letters in which a key differs from the well-known label that was meant: a label
// of one's own is legal.
const mostSlips = 2

// Misspelled returns a sentence for each of the pool's own requirements that looks misspelled, whatever types remain: a
// key that resembles a well-known label, and a value beside others that no type has and that resembles one of theirs.
func Misspelled(pool *model.Pool) []string {
	if pool.Catalog == nil {
		return nil
	}
	wellKnown := slices.Sorted(maps.Keys(pool.Catalog.WellKnown))
	var list []string
	for i := range pool.PoolSpec.Requirements {
		r := &pool.PoolSpec.Requirements[i]
		key := label.Canonical(r.Key)
		if !pool.Catalog.WellKnown[key] {
			if meant := Nearest(key, wellKnown); meant != "" && distance(key, meant, mostSlips+1) <= mostSlips {
				list = append(list, "requirement "+r.Key+" is not on a well-known label: did you mean "+meant+"?")
			}
			continue
		}
		if value, meant := strayValue(r, valuesOfTypes(pool.Catalog, key)); meant != "" {
			list = append(list, "value "+value+" of requirement "+r.Key+" matches no instance type: did you mean "+meant+"?")
		}
	}
	return list
}

// strayValue returns the first required value that no type has and that resembles one that some type has and the
// requirement has not. Labels with many values are left out but the instance type: which families there are differs by
// region, and their names resemble each other.
func strayValue(r *label.Requirement, known []string) (value, meant string) {
	ofType := label.Canonical(r.Key) == model.LabelType
	if r.Operator != label.In || len(known) > fewValues && !ofType {
		return "", ""
	}
	missing := slices.DeleteFunc(slices.Clone(known), func(v string) bool { return slices.Contains(r.Values, v) })
	for _, value := range r.Values {
		meant := Nearest(value, missing)
		if meant == "" || slices.Contains(known, value) || siblings(value, meant) || ofType && family(value) != family(meant) {
			continue
		}
		return value, meant
	}
	return "", ""
}

// siblings reports whether names that resemble each other are likely both meant: short ones, and those that differ in
// the last letter only, as zones do.
func siblings(a, b string) bool {
	return min(len(a), len(b)) <= shortPart || len(a) == len(b) && a[:len(a)-1] == b[:len(b)-1]
}
