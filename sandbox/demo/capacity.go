package demo

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

//go:embed capacity.yaml
var capacityManifest []byte

// capacityStoryName is the story of a capacity reservation, a placement group and a zonal shift.
const capacityStoryName = "capacity"

func capacityStory() story {
	return story{
		opening:  "A capacity reservation, a placement group and a zonal shift",
		manifest: capacityManifest, step: "classes, pools",
		applied: demoPool + ": reserved or on-demand, reservations with the tag team=demo; " + brokers + ": in the placement group " + brokers,
		play:    (*demo).playCapacity, cloud: "aws", before: (*demo).startReserved,
		flags: []string{"--cluster-name=" + demoAWSCluster, "--interruption-queue=" + demoAWSQueue, "--enable-zonal-shift"},
	}
}

const (
	reservedZone  = "us-east-1a"
	reservedTotal = 3
	// brokers is the name of a placement group, of its class and pool, and of the Deployment of the pool.
	brokers    = "brokers"
	partitions = 3
)

// startReserved starts the simulated AWS with a reservation and a placement group.
func (d *demo) startReserved(ctx context.Context) (string, error) {
	what, err := d.startAWS(ctx)
	if err != nil {
		return "", err
	}
	d.aws.sim.AddReservation(awssim.CapacityReservation{Type: "m5.xlarge", Zone: reservedZone, Criteria: "targeted",
		Total: reservedTotal, Tags: map[string]string{"team": "demo"}})
	d.aws.sim.AddPlacementGroup(awssim.PlacementGroup{Name: brokers, Strategy: "partition", Partitions: partitions})
	return what, nil
}

// playCapacity uses up the reservation, fills the partitions, and shifts a zone.
func (d *demo) playCapacity(ctx context.Context) error {
	for _, act := range []struct {
		name string
		play func(context.Context) error
	}{
		{"reservation", d.useReservation}, {"placement group", d.fillPartitions}, {"zonal shift", d.shiftZone},
	} {
		if err := act.play(ctx); err != nil {
			return fmt.Errorf("%s: %w", act.name, err)
		}
	}
	return nil
}

// useReservation launches one machine more than are reserved.
func (d *demo) useReservation(ctx context.Context) error {
	fmt.Fprintf(d.out, "\nReservation: %d m5.xlarge are reserved in %s, and %d pods need a machine each\n\n", reservedTotal, reservedZone,
		reservedTotal+1)
	claims, err := d.grow(ctx, reservedTotal+1)
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, claim := range claims {
		counts[claim.Labels[karpv1.LabelCapacityType]]++
	}
	if counts["reserved"] != reservedTotal || counts["on-demand"] != 1 {
		return fmt.Errorf("the machines are %v, want %d reserved and 1 on demand", counts, reservedTotal)
	}
	fmt.Fprintf(d.out, "\n  The reservation is used up, and nothing of it is left idle; one machine is bought.\n")
	return nil
}

// fillPartitions launches a machine in each partition of the placement group.
func (d *demo) fillPartitions(ctx context.Context) error {
	fmt.Fprintf(d.out, "\nPlacement group: %d pods spread over the %d partitions of %s, which share no racks\n\n",
		partitions, partitions, brokers)
	if err := d.scaleDeployment(ctx, brokers, partitions); err != nil {
		return err
	}
	claims, err := d.awaitMachines(ctx, brokers, partitions, "partition", awsv1.LabelPlacementGroupPartition)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, claim := range claims {
		taken[claim.Labels[awsv1.LabelPlacementGroupPartition]] = true
	}
	if len(taken) != partitions || taken[""] {
		return fmt.Errorf("the machines are in the partitions %v, want one in each of %d", slices.Sorted(maps.Keys(taken)), partitions)
	}
	fmt.Fprintf(d.out, "\n  Each partition has one machine.\n")
	return nil
}

// shiftZone starts a zonal shift away from the zone in which machines were bought, and scales up: new machines are
// elsewhere.
func (d *demo) shiftZone(ctx context.Context) error {
	before, zone := map[string]bool{}, ""
	for _, claim := range d.claimsNow() {
		before[claim.Name] = true
		if claim.Labels[karpv1.LabelNodePool] == demoPool && claim.Labels[karpv1.LabelCapacityType] == karpv1.CapacityTypeOnDemand {
			zone = claim.Labels[corev1.LabelTopologyZone]
		}
	}
	id, err := d.aws.sim.StartShift(zone, awssim.ShiftByUser, 0)
	if err != nil {
		return fmt.Errorf("starting a zonal shift: %w", err)
	}
	fmt.Fprintf(d.out, "\nZonal shift: traffic is shifted away from %s, where the last machine was bought\n\n", zone)
	if err := d.awaitEvent(ctx, "ZonalShiftActive"); err != nil {
		return err
	}
	claims, err := d.grow(ctx, reservedTotal+3)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if in := claim.Labels[corev1.LabelTopologyZone]; !before[claim.Name] && in == zone {
			return fmt.Errorf("NodeClaim %s was launched in %s during the shift", claim.Name, zone)
		}
	}
	d.aws.sim.EndShift(id)
	fmt.Fprintf(d.out, "\n  The new machines are in other zones, and none in %s is removed. The shift ends.\n\n", zone)
	return d.awaitEvent(ctx, "ZonalShiftCleared")
}

// grow scales the Deployment and returns the machines of its pool, which it prints.
func (d *demo) grow(ctx context.Context, pods int) ([]*karpv1.NodeClaim, error) {
	if err := d.scale(ctx, pods); err != nil {
		return nil, err
	}
	return d.awaitMachines(ctx, demoPool, pods, "reservation", awsv1.LabelCapacityReservationID)
}

// awaitMachines waits until the pool has a machine for each of its pods and all of them run, and prints the machines, with
// a column for a label.
func (d *demo) awaitMachines(ctx context.Context, pool string, want int, column, label string) ([]*karpv1.NodeClaim, error) {
	var claims []*karpv1.NodeClaim
	err := d.await(ctx, 3*time.Minute, fmt.Sprintf("%d machines of the pool %s", want, pool), func() (bool, string) {
		claims = slices.DeleteFunc(d.claimsNow(), func(c *karpv1.NodeClaim) bool { return c.Labels[karpv1.LabelNodePool] != pool })
		ready := 0
		for _, claim := range claims {
			if claim.Condition(karpv1.ConditionInitialized).IsTrue() {
				ready++
			}
		}
		pods, _, _ := d.history.present()
		waiting := len(slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }))
		return ready == want && len(claims) == want && waiting == 0,
			fmt.Sprintf("%d of %d machines are ready, %d pods do not run yet", ready, want, waiting)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(claims, func(a, b *karpv1.NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	out := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "  nodeclaim\ttype\tzone\tcapacity\t%s\n", column)
	for _, claim := range claims {
		fmt.Fprintf(out, "  %s\t%s\t%s\t%s\t%s\n", claim.Name, claim.Labels[corev1.LabelInstanceTypeStable],
			claim.Labels[corev1.LabelTopologyZone], claim.Labels[karpv1.LabelCapacityType], claim.Labels[label])
	}
	return claims, out.Flush()
}

// awaitEvent waits for an event with the reason, and prints its message.
func (d *demo) awaitEvent(ctx context.Context, reason string) error {
	message := ""
	err := d.await(ctx, 2*time.Minute, "an event "+reason, func() (bool, string) {
		var events corev1.EventList
		if err := d.objects.client.List(ctx, &events, client.InNamespace(corev1.NamespaceAll)); err != nil {
			return false, err.Error()
		}
		for i := range events.Items {
			if events.Items[i].Reason == reason {
				message = fmt.Sprintf("%s %s of %s: %s", events.Items[i].Type, reason, events.Items[i].InvolvedObject.Name, events.Items[i].Message)
				return true, ""
			}
		}
		return false, "no such event yet"
	})
	if err == nil {
		fmt.Fprintf(d.out, "  %s\n\n", message)
	}
	return err
}
