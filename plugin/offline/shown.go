package offline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Assumed is a DaemonSet that is expected on new nodes because of labels that existing nodes got after they had joined.
type Assumed struct {
	// Labels are those that the nodes show and some DaemonSet names.
	Labels    []string `json:"labels"`
	DaemonSet string   `json:"daemonSet"`
	// Requests are those of its pod, in words.
	Requests string `json:"requests"`
	// Types is the number of instance types of the pool that it concerns, OfTypes that of all.
	Types   int `json:"types,omitempty"`
	OfTypes int `json:"ofTypes,omitempty"`
}

// assumedOfType returns what is assumed of new nodes of the type.
func assumedOfType(pool *model.Pool, instanceType string) []Assumed {
	if pool == nil {
		return nil
	}
	labels, because := pool.Shown(instanceType)
	texts := make([]string, len(labels))
	for i, l := range labels {
		texts[i] = l.String()
	}
	var list []Assumed
	for _, d := range because {
		var requests []string
		for _, a := range d.DaemonSpec.Requests {
			if a.Name != "pods" {
				requests = append(requests, explain.Quantity(a.Name, a.Value)+" of "+a.Name)
			}
		}
		list = append(list, Assumed{Labels: texts, DaemonSet: d.Namespace + "/" + d.Name, Requests: strings.Join(requests, ", ")})
	}
	return list
}

// assumedOfPool returns what is assumed of new nodes of the pool, and of how many types.
func assumedOfPool(pool *model.Pool) []Assumed {
	if pool == nil || pool.Types == nil {
		return nil
	}
	var list []Assumed
	for t := range pool.Eligible.All() {
		for _, a := range assumedOfType(pool, pool.Types.Catalog.Types[t].Name) {
			at := slices.IndexFunc(list, func(o Assumed) bool { return o.DaemonSet == a.DaemonSet && slices.Equal(o.Labels, a.Labels) })
			if at < 0 {
				at, a.OfTypes = len(list), pool.Eligible.Count()
				list = append(list, a)
			}
			list[at].Types++
		}
	}
	return list
}

func (a *Assumed) write(b *strings.Builder) {
	nodes := "new nodes of this type"
	if a.OfTypes > 0 {
		nodes = "new nodes"
	}
	if a.Types < a.OfTypes {
		nodes += fmt.Sprintf(" of %d of %d instance types", a.Types, a.OfTypes)
	}
	fmt.Fprintf(b, "  %s are assumed to get %s, as existing ones did: DaemonSet %s takes room there", nodes, strings.Join(a.Labels,
		", "), a.DaemonSet)
	if a.Requests != "" {
		b.WriteString(" (" + a.Requests + ")")
	}
	b.WriteByte('\n')
}
