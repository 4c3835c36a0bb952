package awssim

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// PlacementGroup is a placement group. Its rules apply to launches as the EC2 User Guide states them:
//
//	cluster    all instances are in one zone, that of the first one
//	partition  each instance is in a partition, the requested one or the one with the fewest instances of its zone;
//	           two partitions for dedicated instances
//	spread     at most seven instances per zone, no dedicated ones; the level host is for Outposts only
//
// The types that a strategy supports are those of DescribeInstanceTypes.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/limitations-placement-groups.html
type PlacementGroup struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Strategy string `json:"strategy"`
	// Partitions is the number of partitions, 2 for the strategy partition when 0.
	Partitions int `json:"partitions"`
	// SpreadLevel is rack or host, rack for the strategy spread when empty.
	SpreadLevel string `json:"spreadLevel,omitempty"`
	// State is available when empty.
	State string            `json:"state,omitempty"`
	Tags  map[string]string `json:"tags,omitempty"`
}

// AddPlacementGroup creates a placement group and returns its ID.
func (c *Cloud) AddPlacementGroup(p PlacementGroup) string {
	c.locked(func(time.Time) {
		p.ID = c.newID("pg")
		defaultTo(&p.State, "available")
		if p.Strategy == "spread" {
			defaultTo(&p.SpreadLevel, "rack")
		}
		if p.Strategy == "partition" && p.Partitions == 0 {
			p.Partitions = 2
		}
		c.placements = append(c.placements, &p)
	})
	return p.ID
}

// DeletePlacementGroup deletes a placement group without instances. Otherwise the error is EC2's.
func (c *Cloud) DeletePlacementGroup(id string) error {
	err := fmt.Errorf("no placement group %q", id)
	c.locked(func(time.Time) {
		k := slices.IndexFunc(c.placements, func(p *PlacementGroup) bool { return p.ID == id })
		if k < 0 {
			return
		}
		if len(c.placedIn(c.placements[k], "")) > 0 {
			err = refuse("InvalidPlacementGroup.InUse", "The placement group '%s' is in use and may not be deleted.", c.placements[k].Name)
			return
		}
		c.placements, err = slices.Delete(c.placements, k, k+1), nil
	})
	return err
}

// describePlacementGroups implements ec2:DescribePlacementGroups.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribePlacementGroups.html
func describePlacementGroups(c *Cloud, r *request, _ time.Time) (any, error) {
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	found, err := chosen(r.form.strings("GroupName"), c.placements, func(p *PlacementGroup) string { return p.Name }, unknownPlacement)
	if err != nil {
		return nil, err
	}
	if found, err = chosen(r.form.strings("GroupId"), found, func(p *PlacementGroup) string { return p.ID }, unknownPlacement); err != nil {
		return nil, err
	}
	if found, err = keep(filters, found, func(p *PlacementGroup) facts {
		return r.facts(p.Tags, func() any { return c.placementXML(p) })
	}); err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlPlacementGroup `xml:"placementGroupSet>item,omitempty"`
	}
	for _, p := range found {
		out.Items = append(out.Items, c.placementXML(p))
	}
	return out, nil
}

type xmlPlacementGroup struct {
	ID          string   `xml:"groupId"`
	ARN         string   `xml:"groupArn"`
	Name        string   `xml:"groupName"`
	State       string   `xml:"state"`
	Strategy    string   `xml:"strategy"`
	Partitions  int      `xml:"partitionCount,omitempty"`
	SpreadLevel string   `xml:"spreadLevel,omitempty"`
	Tags        []ec2Tag `xml:"tagSet>item,omitempty"`
}

func (c *Cloud) placementXML(p *PlacementGroup) xmlPlacementGroup {
	return xmlPlacementGroup{p.ID, c.placementARN(p), p.Name, p.State, p.Strategy, p.Partitions, p.SpreadLevel, ec2Tags(p.Tags)}
}

func (c *Cloud) placementARN(p *PlacementGroup) string {
	return fmt.Sprintf("arn:aws:ec2:%s:%s:placement-group/%s", c.opts.Region, c.opts.AccountID, p.Name)
}

func unknownPlacement(name string) error {
	return refuse("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
}

// placementOf returns the placement group of a launch, nil without one. It may be in any state.
func (c *Cloud) placementOf(spec *launchSpec) *PlacementGroup {
	if spec.placementID == "" && spec.placementName == "" {
		return nil
	}
	for _, p := range c.placements {
		if p.ID == spec.placementID || spec.placementID == "" && p.Name == spec.placementName {
			return p
		}
	}
	return nil
}

// placedIn returns the live instances of a placement group in a zone, or in all zones.
func (c *Cloud) placedIn(p *PlacementGroup, zone string) []*instance {
	var placed []*instance
	for _, i := range c.order {
		if i.alive() && i.placement == p && (zone == "" || i.Zone == zone) {
			placed = append(placed, i)
		}
	}
	return placed
}

// checkPlacementGroup rejects a launch that its placement group never allows.
func (c *Cloud) checkPlacementGroup(spec *launchSpec, t *machineType) error {
	p := c.placementOf(spec)
	switch {
	case spec.placementID == "" && spec.placementName == "" && spec.partition != 0:
		return refuse("InvalidParameterCombination", "The parameter PartitionNumber requires a placement group with the strategy partition")
	case spec.placementID == "" && spec.placementName == "":
		return nil
	case spec.placementID != "" && spec.placementName != "":
		return refuse("InvalidParameterCombination", "The parameter GroupId cannot be used with the parameter GroupName")
	case p == nil || p.State != "available":
		return unknownPlacement(cmp.Or(spec.placementID, spec.placementName))
	case spec.tenancy == "host":
		return refuse("InvalidParameterCombination", "You can't launch Dedicated Hosts in placement groups")
	case !slices.Contains(t.Strategies, p.Strategy):
		return refuse("InvalidParameterCombination",
			"%s placement groups are not supported by the '%s' instance type. Specify a supported instance type or change the "+
				"placement group strategy, and try again.", p.Strategy, t.Name)
	case p.Strategy == "spread" && p.SpreadLevel == "host":
		return refuse("UnsupportedOperation", "Host level spread placement groups are only available with AWS Outposts")
	case p.Strategy == "spread" && spec.tenancy == "dedicated":
		return refuse("InvalidParameterCombination", "Spread placement groups are not supported for Dedicated Instances")
	case spec.partition != 0 && p.Strategy != "partition":
		return refuse("InvalidParameterCombination",
			"The parameter PartitionNumber is valid only if the placement group strategy is set to partition")
	case spec.partition < 0 || spec.partition > p.partitionsFor(spec):
		return refuse("InvalidParameterValue", "Partition number %d is invalid for placement group '%s', which has %d for the tenancy",
			spec.partition, p.Name, p.partitionsFor(spec))
	}
	return nil
}

// partitionsFor returns the number of partitions for instances with the tenancy of the launch: two for dedicated ones.
func (p *PlacementGroup) partitionsFor(spec *launchSpec) int {
	if p.Strategy == "partition" && spec.tenancy == "dedicated" {
		return min(2, p.Partitions)
	}
	return p.Partitions
}

// mostSpread is the number of running instances of a spread placement group per zone.
const mostSpread = 7

// placementFull returns why one more instance of a placement group is not available in a zone.
func (c *Cloud) placementFull(o *override, s *subnet) error {
	p := c.placementOf(o.spec)
	if p == nil {
		return nil
	}
	placed := c.placedIn(p, "")
	switch {
	case p.Strategy == "cluster" && len(placed) > 0 && placed[0].Zone != s.zone.name:
		return refuse("InsufficientInstanceCapacity",
			"The placement group '%s' has instances in the Availability Zone %s. A cluster placement group cannot span Availability Zones.",
			p.Name, placed[0].Zone)
	case p.Strategy == "spread" && len(c.placedIn(p, s.zone.name)) >= mostSpread:
		return refuse("InsufficientInstanceCapacity",
			"You have reached the limit of instances in this spread placement group: %d running instances per Availability Zone.", mostSpread)
	}
	return nil
}

// partitionOf returns the partition of a new instance: the requested one, or the one that has the fewest instances in
// the zone. It is 0 without partitions.
func (c *Cloud) partitionOf(spec *launchSpec, zone string) int {
	p := c.placementOf(spec)
	if p == nil || p.Strategy != "partition" || spec.partition != 0 {
		return spec.partition
	}
	used := make([]int, p.partitionsFor(spec)+1)
	for _, i := range c.placedIn(p, zone) {
		if i.Partition < len(used) {
			used[i.Partition]++
		}
	}
	least := 1
	for n := range used {
		if n > 0 && used[n] < used[least] {
			least = n
		}
	}
	return least
}
