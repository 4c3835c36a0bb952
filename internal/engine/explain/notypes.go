package explain

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// NoTypes returns which of the pool's own requirements leaves it without an instance type, with a suggestion if a
// value looks misspelled. It returns "" for a pool that has types, or whose types are not known.
func NoTypes(snap *model.Snapshot, pool *model.Pool) string {
	v := plan.NoTypes(snap, pool)
	if v.OK() {
		return ""
	}
	text := noTypes(snap, pool.Name, v)
	if hint := strangeValue(snap, pool, v); hint != "" {
		text += "; " + hint
	}
	return text
}

// noTypes returns the verdict with the requirement of the pool.
func noTypes(snap *model.Snapshot, poolName string, v plan.Verdict) string {
	o := operands{snap, v}
	pool := snap.Pool(poolName)
	if pool == nil || int(v.Key) >= snap.Space.Len() {
		return matchesNone(o)
	}
	key := snap.Space.Name(v.Key)
	asked := ask(key, pool.PoolSpec.Requirements)
	if asked == "" {
		return matchesNone(o)
	}
	return "the pool's own requirement " + key + " " + asked + " " + leavesNone(v)
}

// matchesNone returns the verdict for an unknown pool.
func matchesNone(o operands) string {
	return "the pool's own requirement on " + o.key() + " " + leavesNone(o.Verdict)
}

func leavesNone(v plan.Verdict) string {
	if int64(v.Types) < v.Have {
		return "matches none of the " + count(v.Types, "instance type") + " that its other requirements match of " + strconv.FormatInt(v.Have, 10)
	}
	return "matches none of " + count(v.Types, "instance type")
}

// fewValues is the maximum number of values of a label that are listed.
const fewValues = 8

// strangeValue returns a hint for required values that no type has: a similar existing value, the families that do
// not exist, or, if they are few, the existing values.
func strangeValue(snap *model.Snapshot, pool *model.Pool, v plan.Verdict) string {
	if pool == nil || pool.Catalog == nil || int64(v.Types) < v.Have || int(v.Key) >= snap.Space.Len() {
		return ""
	}
	key := snap.Space.Name(v.Key)
	known := valuesOfTypes(pool.Catalog, key)
	var asked []string
	for _, r := range pool.PoolSpec.Requirements {
		if label.Canonical(r.Key) == key && r.Operator == label.In {
			asked = append(asked, r.Values...)
		}
	}
	if len(asked) == 0 || len(known) == 0 {
		return ""
	}
	for _, value := range asked {
		if meant := Nearest(value, known); meant != "" {
			return "did you mean " + meant + "?"
		}
	}
	if text := strangeFamilies(asked, known); text != "" && key == model.LabelType {
		return text
	}
	if len(known) <= fewValues {
		return "instance types have " + and(known)
	}
	return ""
}

// strangeFamilies returns a list of the instance type families that do not exist, or "" if one of them does.
func strangeFamilies(asked, known []string) string {
	there := map[string]bool{}
	for _, name := range known {
		there[family(name)] = true
	}
	missing := map[string]bool{}
	for _, name := range asked {
		if there[family(name)] || !strings.Contains(name, ".") {
			return ""
		}
		missing[family(name)] = true
	}
	names := slices.Sorted(maps.Keys(missing))
	if len(names) == 1 {
		return "no instance type of the family " + names[0] + " is available here"
	}
	return "no instance type of the families " + and(names) + " is available here"
}

func family(instanceType string) string {
	return instanceType[:max(0, strings.IndexByte(instanceType, '.'))]
}

// valuesOfTypes returns the values of a label that instance types or their offerings have, sorted.
func valuesOfTypes(catalog *model.Catalog, key string) []string {
	values := map[string]bool{}
	for i := range catalog.Types {
		for _, r := range catalog.Types[i].Requirements {
			if label.Canonical(r.Key) == key && r.Operator == label.In {
				for _, value := range r.Values {
					values[value] = true
				}
			}
		}
		for k := range catalog.Types[i].Offerings {
			o := &catalog.Types[i].Offerings[k]
			if value := map[string]string{model.LabelZone: o.Zone, model.LabelCapacityType: o.CapacityType}[key]; value != "" {
				values[value] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(values))
}

// Nearest returns the known name that was probably meant, or "" if none is close: few letters are changed, added,
// dropped or swapped. Parts that are separated by dots, as in instance types, are compared one by one, and one of
// them must be equal. In a part of at most three letters no letter may be replaced, because such names differ by
// little. If several are equally close, the first wins.
func Nearest(name string, known []string) string {
	best, least := "", slipsAllowed(name)+1
	for _, k := range known {
		if k == name {
			return ""
		}
		if d := typoDistance(name, k, least); d < least {
			best, least = k, d
		}
	}
	return best
}

func slipsAllowed(name string) int { return max(1, min(3, len(name)/4)) }

// typoDistance returns the number of letters in which two names differ, or limit if they differ by more than a typing
// mistake.
func typoDistance(a, b string, limit int) int {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	if len(left) != len(right) || len(left) == 1 {
		return partSlips(a, b, limit)
	}
	sum, same := 0, 0
	for i := range left {
		d := partSlips(left[i], right[i], limit)
		if d == 0 {
			same++
		}
		sum += d
	}
	if same == 0 {
		return limit
	}
	return min(sum, limit)
}

// shortPart is the length of names in which a replaced letter makes another name.
const shortPart = 3

func partSlips(a, b string, limit int) int {
	d := distance(a, b, limit)
	switch short := min(len(a), len(b)) <= shortPart; {
	case !short || d == 0 || d == 1 && len(a) != len(b):
		return d
	case len(a) != len(b):
		return limit
	}
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	if slices.Equal(x, y) {
		return d // swapped letters
	}
	return limit
}
