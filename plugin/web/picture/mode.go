package picture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// Mode is what the color of a node says.
type Mode string

// The modes.
const (
	Fill     Mode = "fill"
	Workload Mode = "workload"
	Pool     Mode = "pool"
	Zone     Mode = "zone"
	Capacity Mode = "capacity"
	Waste    Mode = "waste"
	Why      Mode = "why"
	Ages     Mode = "age"
	Drift    Mode = "drift"
)

// Modes returns all modes, in the order in which they are offered.
func Modes() []Mode { return []Mode{Fill, Workload, Pool, Zone, Capacity, Waste, Why, Ages, Drift} }

// Title returns the mode in words.
func (m Mode) Title() string {
	return map[Mode]string{Fill: "how full it is", Workload: "workload", Pool: "pool", Zone: "zone", Capacity: "capacity type",
		Waste: "unused USD a month", Why: "why it stays", Ages: "age", Drift: "drift"}[m]
}

// look is the classes of a mode, each with its color.
type look struct {
	class func(*view.Node) int
	keys  []Key
}

// legend returns the classes that occur.
func (l *look) legend() []Key {
	return slices.DeleteFunc(slices.Clone(l.keys), func(k Key) bool { return k.Count == 0 })
}

func lookOf(f *view.Fleet, mode Mode) *look {
	var l *look
	switch mode {
	case Workload:
		return &look{func(*view.Node) int { return 0 }, []Key{{Role: Neutral}}}
	case Pool:
		l = named(f, func(n *view.Node) string { return cmp.Or(n.Pool, "no pool") })
	case Zone:
		l = named(f, func(n *view.Node) string { return cmp.Or(n.Zone, "unknown") })
	case Capacity:
		l = capacities()
	case Why:
		l = whys()
	case Waste:
		l = wasted(f)
	case Ages:
		l = stepped([]string{"under an hour", "under a day", "under a week", "under 30 days", "30 days and more"}, func(n *view.Node) int {
			return below(n.Age, time.Hour, 24*time.Hour, 7*24*time.Hour, 30*24*time.Hour)
		})
	case Drift:
		l = &look{func(n *view.Node) int {
			if n.Drifted != "" {
				return 0
			}
			return 1
		}, []Key{{Role: Warn, Pattern: Hatched, Text: "drifted", Class: "drifted"}, {Role: Step0, Text: "matches its pool", Class: "matching"}}}
	default:
		l = stepped([]string{"under 25%", "25 to 50%", "50 to 75%", "75 to 90%", "90% and more"}, func(n *view.Node) int {
			return below(n.Share(), 0.25, 0.5, 0.75, 0.9)
		})
	}
	for i := range f.Nodes {
		if !f.Nodes[i].Other {
			l.keys[l.class(&f.Nodes[i])].Count++
		}
	}
	return l
}

// below returns the index of the first limit that the value is below, their number if it is below none.
func below[T cmp.Ordered](value T, limits ...T) int {
	at := slices.IndexFunc(limits, func(limit T) bool { return value < limit })
	if at < 0 {
		return len(limits)
	}
	return at
}

// stepped returns a look of classes that have an order.
func stepped(texts []string, class func(*view.Node) int) *look {
	l := &look{class: class}
	for i, text := range texts {
		l.keys = append(l.keys, Key{Role: Step0 + Role(i), Text: text, Class: strconv.Itoa(i)})
	}
	return l
}

// wasted classes nodes by the price of their unused part, in fifths of the highest.
func wasted(f *view.Fleet) *look {
	most := 0.0
	for i := range f.Nodes {
		most = max(most, f.Nodes[i].Waste())
	}
	limits, texts := make([]float64, steps-1), make([]string, steps)
	for i := range steps {
		at := most * float64(i+1) / steps
		texts[i] = fmt.Sprintf("up to %.2f", at*view.HoursPerMonth)
		if i < steps-1 {
			limits[i] = at
		}
	}
	return stepped(texts, func(n *view.Node) int { return below(n.Waste(), limits...) })
}

// capacities returns the look of capacity types, whose colors are those of the map.
func capacities() *look {
	kinds := []string{"on-demand", "spot", "reserved"}
	l := &look{class: func(n *view.Node) int {
		if at := slices.Index(kinds, n.CapacityType); at >= 0 {
			return at
		}
		return len(kinds)
	}}
	for _, kind := range kinds {
		role, pattern := capacityRole(kind)
		l.keys = append(l.keys, Key{Role: role, Pattern: pattern, Text: kind, Class: kind})
	}
	l.keys = append(l.keys, Key{Role: Neutral, Text: "unknown", Class: "unknown"})
	return l
}

// Legend returns the classes of a mode other than Workload, with the number of nodes of each.
func Legend(f *view.Fleet, mode Mode) []Key { return lookOf(f, mode).legend() }

// Only returns the fleet in which nodes are Other that are not of a class of the mode. A class that does not exist selects all.
func Only(f *view.Fleet, mode Mode, class string) *view.Fleet {
	l := lookOf(f, mode)
	at := slices.IndexFunc(l.keys, func(k Key) bool { return k.Class == class })
	if class == "" || at < 0 {
		return f
	}
	only := *f
	only.Nodes = slices.Clone(f.Nodes)
	for i := range only.Nodes {
		n := &only.Nodes[i]
		n.Other = n.Other || l.class(n) != at
	}
	return &only
}

// named returns a look of a class for each name: the most frequent ones in the order of their names, so that a color stays
// when counts change. Names beyond the series share the last class.
func named(f *view.Fleet, name func(*view.Node) string) *look {
	counts := map[string]int{}
	for i := range f.Nodes {
		counts[name(&f.Nodes[i])]++
	}
	list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	slices.Sort(list[:min(len(list), series)])
	l, at := &look{}, map[string]int{}
	for i, text := range list {
		if at[text] = i; i < series {
			l.keys = append(l.keys, Key{Role: Series0 + Role(i), Text: text, Class: "=" + text})
			continue
		}
		at[text] = series
		if i == series {
			l.keys = append(l.keys, Key{Role: Neutral, Pattern: Dotted, Text: "others", Class: "others"})
		}
	}
	if len(l.keys) == 0 {
		l.keys = []Key{{Role: Series0}}
	}
	l.class = func(n *view.Node) int { return at[name(n)] }
	return l
}
