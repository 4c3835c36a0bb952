package launch

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// A machine takes the addresses of its pods: 29 of an m5.large; whole blocks of 16 with prefix delegation; one in a
// cluster with IPv6.
func TestAddressesOfAMachine(t *testing.T) {
	in(t, awssim.Options{}, func(_ context.Context, w *world) {
		for _, test := range []struct {
			name   string
			change func(*Order)
			want   int64
		}{
			{"plain", func(*Order) {}, 29},
			{"prefixes", func(o *Order) {
				o.Class = o.Class.DeepCopy()
				o.Class.Annotations = map[string]string{awsv1.AnnotationPrefixDelegation: "true"}
			}, 33},
			{"custom networking, or another CNI", func(o *Order) { o.PodsElsewhere = true }, 1},
			{"IPv6", func(o *Order) { o.Cluster.IPv6 = true }, 1},
		} {
			order := w.order("claim")
			test.change(order)
			if got := planOf(t, order).addressesIn(zoneA); got != test.want {
				t.Errorf("%s: %d addresses, want %d", test.name, got, test.want)
			}
		}
	})
}

// Zones whose subnets lack addresses for the pods are avoided, as long as there are others: launches cost nothing then
// that they would not cost elsewhere, and pods start.
func TestZonesWithRoom(t *testing.T) {
	in(t, awssim.Options{}, func(_ context.Context, w *world) {
		all := []string{zoneA, zoneB, "us-east-1c"}
		anywhere := func(more ...karpv1.Requirement) *Order {
			return w.order("claim", append([]karpv1.Requirement{oneOf("node.kubernetes.io/instance-type", "m5.large"),
				oneOf(karpv1.LabelCapacityType, "on-demand"), oneOf("topology.kubernetes.io/zone", all...)}, more...)...)
		}
		three := 3
		varied := karpv1.Requirement{Key: "topology.kubernetes.io/zone", Operator: "In", Values: all, MinValues: &three}
		for _, test := range []struct {
			name  string
			order *Order
			size  int
			room  map[string]int64
			want  []string
		}{
			{"nothing is known", anywhere(), 1, nil, all},
			{"enough everywhere", anywhere(), 3, map[string]int64{all[0]: 29, all[1]: 29, all[2]: 29}, all},
			{"one lacks addresses for the pods of a machine", anywhere(), 1, map[string]int64{all[0]: 28, all[1]: 29}, all[1:]},
			{"one lacks them for its share of six", anywhere(), 6, map[string]int64{all[0]: 57, all[1]: 58, all[2]: 1000}, all[1:]},
			{"none has them for its share", anywhere(), 6, map[string]int64{all[0]: 57, all[1]: 28, all[2]: 29}, []string{all[0], all[2]}},
			{"none has them for a machine", anywhere(), 1, map[string]int64{all[0]: 28, all[1]: 1, all[2]: 0}, all},
			{"minValues need all", anywhere(varied), 1, map[string]int64{all[0]: 28}, all},
			{"the pods are of one zone", anywhere(oneOf("topology.kubernetes.io/zone", all[0])), 1, map[string]int64{all[0]: 28}, all[:1]},
		} {
			w.subnets.room = test.room
			if test.room == nil {
				w.subnets.room = map[string]int64{}
			}
			got := w.launcher().zonesWithRoom(planOf(t, test.order), test.size)
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: %s", test.name, cmp.Diff(test.want, got))
			}
		}
	})
}
