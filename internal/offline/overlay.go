package offline

import (
	"fmt"
	"slices"
	"strings"

	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/overlay"
	"github.com/karpenter-go/karpenter/internal/engine/brake"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

// OverlayOutcome is what a NodeOverlay of the files does. Reason is empty if it is valid and conflicts with none.
type OverlayOutcome struct {
	Name    string `json:"name"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
}

// WithoutOverlays is the plan for the same pods at the prices and with the resources of the provider alone.
type WithoutOverlays struct {
	Nodes         int     `json:"nodes"`
	Unschedulable int     `json:"unschedulable"`
	PricePerHour  float64 `json:"pricePerHour"`
	CostPerHour   float64 `json:"costPerHour"`
}

// overlaid applies the overlays to the types of all pools, and returns what they do. Pools without changes keep their
// slice of types.
func (w *InputSet) overlaid(pools []overlay.Pool, v *convert.Vocabulary) []OverlayOutcome {
	if len(w.overlays) == 0 {
		return nil
	}
	objects := make([]*karpv1alpha1.NodeOverlay, len(w.overlays))
	for i := range w.overlays {
		objects[i] = w.overlays[i].object
	}
	resolved := overlay.New(objects, v.Rules, w.sale.Declared.ReservationKey).Resolve(pools)
	for i := range pools {
		pools[i].Types, _ = resolved.Apply(pools[i])
	}
	var list []OverlayOutcome
	for _, r := range resolved.Reports() {
		list = append(list, OverlayOutcome{r.Name, r.Reason, r.Message})
	}
	return list
}

// withoutOverlays plans once more without overlays, if there are any.
func (w *InputSet) withoutOverlays(opts placement.Options) *WithoutOverlays {
	if len(w.overlays) == 0 {
		return nil
	}
	manifests, plain := *w.Manifests, *w
	manifests.overlays, plain.Manifests = nil, &manifests
	snap := plain.convert().builder.Snapshot(w.now)
	p := brake.Restrain(snap, placement.Schedule(snap, opts))
	price, cost := priceOf(snap, p, opts)
	o := &WithoutOverlays{Nodes: len(p.Claims), PricePerHour: usd(price), CostPerHour: usd(cost)}
	for _, r := range p.Refused {
		o.Unschedulable += len(r.Pods)
	}
	return o
}

// writeOverlays prints what the overlays do, and the plan without them.
func (a *LaunchAnswer) writeOverlays(b *strings.Builder) {
	for _, o := range a.Overlays {
		fmt.Fprintf(b, "overlay %s: %s\n", o.Name, o.Message)
	}
	if o := a.WithoutOverlays; o != nil {
		fmt.Fprintf(b, "without NodeOverlays: %s, %d unschedulable, price %.4f USD per hour; with them %+.4f\n",
			plural(o.Nodes, "new node"), o.Unschedulable, o.PricePerHour, a.PricePerHour-o.PricePerHour)
	}
	if slices.ContainsFunc(a.Overlays, func(o OverlayOutcome) bool { return o.Reason != "" }) {
		b.WriteString("a NodeOverlay that is invalid or conflicts has no effect\n")
	}
}
