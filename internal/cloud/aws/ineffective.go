package aws

import (
	"context"
	"fmt"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// Ineffective is a setting that has no effect as things are.
type Ineffective struct {
	// Setting is a flag, a feature gate, or a field or annotation of an object.
	Setting string
	// Because says why, and what it means.
	Because string
}

// circumstances are what decides whether a setting has an effect.
type circumstances struct {
	opts    *Options
	pools   []karpv1.NodePool
	classes []awsv1.EC2NodeClass
}

// ineffectives lists the checks for settings without effect. Each returns what it found, nil if all have an effect.
var ineffectives = []func(*circumstances) []Ineffective{
	spotWithoutQueue, backoffWithoutQueue, rebalanceWithoutQueue, reservationsWithoutGate, openReservationsWithoutGate,
	prefixesWithMaxPods,
}

// Ineffective returns the settings that have no effect, in a fixed order. It reads the NodePools and the node classes.
func (p *Provider) Ineffective(ctx context.Context) ([]Ineffective, error) {
	var pools karpv1.NodePoolList
	if err := p.opts.Live.List(ctx, &pools); err != nil {
		return nil, fmt.Errorf("listing NodePools, to find settings without effect: %w", err)
	}
	var classes awsv1.EC2NodeClassList
	if err := p.opts.Live.List(ctx, &classes); err != nil {
		return nil, fmt.Errorf("listing EC2NodeClasses, to find settings without effect: %w", err)
	}
	c := &circumstances{opts: &p.opts, pools: pools.Items, classes: classes.Items}
	var found []Ineffective
	for _, check := range ineffectives {
		found = append(found, check(c)...)
	}
	return found, nil
}

func spotWithoutQueue(c *circumstances) []Ineffective {
	if c.opts.Queue != "" {
		return nil
	}
	for i := range c.pools {
		if allowsSpot(c.pools[i]) {
			return []Ineffective{{"--interruption-queue", fmt.Sprintf("it is empty, and NodePool %q allows spot: "+
				"no notice of an interruption is received, and nodes disappear without a drain", c.pools[i].Name)}}
		}
	}
	return nil
}

func backoffWithoutQueue(c *circumstances) []Ineffective {
	if c.opts.Queue != "" || c.opts.InterruptionBackoff <= instance.UnavailableFor {
		return nil
	}
	return []Ineffective{{"--interruption-backoff", "--interruption-queue is empty: no interruption is counted"}}
}

func rebalanceWithoutQueue(c *circumstances) (found []Ineffective) {
	for i := range c.pools {
		if pool := &c.pools[i]; c.opts.Queue == "" && pool.Annotations[karpv1.AnnotationRebalance] != "" {
			found = append(found, Ineffective{fmt.Sprintf("annotation %s of NodePool %q", karpv1.AnnotationRebalance, pool.Name),
				"--interruption-queue is empty: no rebalance recommendation is received"})
		}
	}
	return found
}

func prefixesWithMaxPods(c *circumstances) (found []Ineffective) {
	for i := range c.classes {
		class := &c.classes[i]
		if class.PrefixDelegation() && class.Spec.Kubelet != nil && class.Spec.Kubelet.MaxPods != nil {
			found = append(found, Ineffective{fmt.Sprintf("annotation %s of EC2NodeClass %q", awsv1.AnnotationPrefixDelegation, class.Name),
				"spec.kubelet.maxPods is set, and is the number of pods of each node"})
		}
	}
	return found
}

func reservationsWithoutGate(c *circumstances) (found []Ineffective) {
	if !c.opts.OpenReservations {
		return nil
	}
	for i := range c.classes {
		if len(c.classes[i].Spec.CapacityReservationSelectorTerms) > 0 {
			found = append(found, Ineffective{fmt.Sprintf("spec.capacityReservationSelectorTerms of EC2NodeClass %q", c.classes[i].Name),
				"the feature gate ReservedCapacity is off: no machine is launched into the reservations by name"})
		}
	}
	return found
}

func openReservationsWithoutGate(c *circumstances) (found []Ineffective) {
	if !c.opts.OpenReservations {
		return nil
	}
	for i := range c.classes {
		if c.classes[i].OpenReservations() {
			found = append(found, Ineffective{fmt.Sprintf("annotation %s of EC2NodeClass %q", awsv1.AnnotationOpenReservations, c.classes[i].Name),
				"the feature gate ReservedCapacity is off: the machines of all classes may start in open reservations"})
		}
	}
	return found
}
