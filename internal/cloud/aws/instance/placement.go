package instance

import (
	"slices"
	"strconv"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// PlacementGroup is the placement group of a class, empty without one.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-groups.html
type PlacementGroup struct {
	ID string
	// Strategy is one of the catalog's.
	Strategy string
	// Partitions is the number of partitions, which are numbered from 1; 0 with another strategy.
	Partitions int
	// OnHosts means the spread level host, which Outposts have only.
	OnHosts bool
	// Zone is the only zone that a cluster placement group can have more machines in, that of its machines. It is empty
	// if it has none or is of another strategy.
	Zone string
}

// mostPartitions is the number of partitions that EC2 allows in a zone.
const mostPartitions = 7

// AssumedPlacement returns the placement group of a class for plans without AWS, which knows its strategy: one that all
// types support, with as many partitions as EC2 allows. id is empty if the class has the name only.
func AssumedPlacement(id string) PlacementGroup {
	if id == "" {
		id = "pg-unknown"
	}
	return PlacementGroup{ID: id, Partitions: mostPartitions}
}

// refusesPlacement checks the placement group of the class.
func (b *builder) refusesPlacement(t *catalog.Type) string {
	group := b.class.Placement
	switch {
	case group.ID == "" || group.Strategy == "": // none, or an assumed one
		return ""
	case group.OnHosts:
		return "is not on an Outpost, which placement groups with the spread level host require"
	case !slices.Contains(t.PlacementStrategies, group.Strategy):
		return "does not support " + group.Strategy + " placement groups, and spec.placementGroupSelector selects one"
	}
	return ""
}

// placement adds the labels of the placement group. Which partition a machine is in is decided at its launch.
func (l *labels) placement(group PlacementGroup) {
	if group.ID == "" {
		l.lacks(awsv1.LabelPlacementGroupID, awsv1.LabelPlacementGroupPartition)
		return
	}
	l.has(awsv1.LabelPlacementGroupID, group.ID)
	if group.Partitions == 0 {
		l.lacks(awsv1.LabelPlacementGroupPartition)
		return
	}
	l.has(awsv1.LabelPlacementGroupPartition, group.partitions()...)
}

// partitions returns the values of the label, in ascending order.
func (g PlacementGroup) partitions() []string {
	var values []string
	for n := 1; n <= g.Partitions; n++ {
		values = append(values, strconv.Itoa(n))
	}
	return values
}

// byPartition divides an offering into one for each partition while EC2 refuses some of the partitions and not the
// offering as a whole. Otherwise there is one offering for all of them, and the label of the type has their numbers.
func (g PlacementGroup) byPartition(offering cloud.Offering, offer Offer, m *Market) []cloud.Offering {
	if !offering.RetryAt.IsZero() {
		return []cloud.Offering{offering}
	}
	until, refused := make([]time.Time, g.Partitions), false
	for n := range until {
		offer.Partition = n + 1
		until[n] = m.Unavailable(offer)
		refused = refused || !until[n].IsZero()
	}
	if !refused {
		return []cloud.Offering{offering}
	}
	divided := make([]cloud.Offering, g.Partitions)
	for n, value := range g.partitions() {
		own := labels(slices.Clone(offering.Requirements))
		own.has(awsv1.LabelPlacementGroupPartition, value)
		divided[n] = offering
		divided[n].Requirements = own
		refuse(&divided[n], until[n])
	}
	return divided
}

// refuse marks an offering that EC2 is assumed to refuse until a time, zero for one that it may launch.
func refuse(offering *cloud.Offering, until time.Time) {
	if !until.IsZero() {
		offering.Available, offering.RefusedAt, offering.RetryAt = false, until.Add(-UnavailableFor), until
	}
}
