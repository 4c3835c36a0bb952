package awssim

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// override is one way for a fleet to launch an instance: a launch template with the changes of an override.
type override struct {
	template  *launchTemplate
	version   string
	spec      *launchSpec
	name      string // the instance type
	subnet    string
	zone      string
	image     string
	priority  float64
	hasOrder  bool
	weight    float64
	permanent error // why a launch is impossible regardless of capacity
	pool      pool
}

// fleetRequest is a parsed CreateFleet request.
type fleetRequest struct {
	id        string
	token     string // the client token
	capacity  string // of the pools: spot or on-demand
	lifecycle string
	strategy  string
	pools     int // for the spot strategy lowest-price
	total     int
	overrides []*override
	tags      map[string]map[string]string
}

// createFleet implements ec2:CreateFleet for fleets of type instant. It launches what is available now, in the order of
// the allocation strategy, and reports the rest per override in Errors. The status is 200 even if nothing was launched.
// Context is opaque to callers and has no effect.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html,
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instant-fleet.html
func createFleet(c *Cloud, r *request, now time.Time) (any, error) {
	return c.once(r, func() (any, error) {
		r.form.at("Context") // reserved
		fleet, err := c.parseFleet(r.form, now)
		if err != nil {
			return nil, err
		}
		if r.form.boolean("DryRun") {
			if c.launchDenied() {
				return nil, c.deniedError("ec2", "RunInstances")
			}
			return nil, dryRunError()
		}
		fleet.id, fleet.token = "fleet-"+c.uuid(), r.form.str("ClientToken")
		return c.fulfill(fleet, now), nil
	})
}

func (c *Cloud) parseFleet(n *node, now time.Time) (*fleetRequest, error) {
	if kind := n.str("Type"); kind != "instant" {
		return nil, refuse("UnsupportedOperation", "fleets of type '%s' are not simulated, only instant ones", kind)
	}
	f := &fleetRequest{}
	if err := f.parseTarget(n); err != nil {
		return nil, err
	}
	var err error
	if f.tags, err = tagSpecs(n, "fleet", "instance", "volume", "network-interface", "spot-instances-request"); err != nil {
		return nil, err
	}
	configs := n.items("LaunchTemplateConfigs")
	if len(configs) == 0 || len(configs) > 50 {
		return nil, refuse("InvalidParameterValue", "A fleet needs 1 to 50 launch template configs")
	}
	for _, config := range configs {
		overrides, err := c.parseConfig(config, f.capacity, now)
		if err != nil {
			return nil, err
		}
		f.overrides = append(f.overrides, overrides...)
	}
	if err := f.checkReserved(); err != nil {
		return nil, err
	}
	if len(f.overrides) > 300 {
		return nil, refuse("InvalidParameterValue", "A fleet takes at most 300 launch specifications")
	}
	return f, nil
}

// parseTarget parses the number of instances and the allocation strategy.
func (f *fleetRequest) parseTarget(n *node) error {
	target := n.at("TargetCapacitySpecification")
	if err := target.only("TargetCapacitySpecification", "TotalTargetCapacity", "DefaultTargetCapacityType"); err != nil {
		return err
	}
	var err error
	if f.total, err = target.integer("TotalTargetCapacity", 0); err != nil {
		return err
	}
	if f.total < 1 || f.total > 10_000 {
		return refuse("InvalidParameterValue", "TotalTargetCapacity must be 1 to 10000, not '%s'", target.str("TotalTargetCapacity"))
	}
	if err := target.oneOf("DefaultTargetCapacityType", spot, onDemand, marketBlock, targetReserved); err != nil {
		return err
	}
	f.lifecycle = target.str("DefaultTargetCapacityType")
	defaultTo(&f.lifecycle, onDemand)
	if err := f.parseReserved(n); err != nil {
		return err
	}
	f.capacity, f.pools = onDemand, 1
	if f.lifecycle == spot {
		f.capacity = spot
	}
	for _, capacity := range []string{onDemand, spot} {
		if err := f.parseOptions(n, capacity); err != nil {
			return err
		}
	}
	defaultTo(&f.strategy, "lowest-price")
	return nil
}

// parseOptions parses the options for a capacity type. Those of the other type are checked and have no effect.
func (f *fleetRequest) parseOptions(n *node, capacity string) error {
	options, members := "OnDemandOptions", []string{"AllocationStrategy"}
	known := []string{"lowest-price", "prioritized"}
	if capacity == spot {
		options, members = "SpotOptions", []string{"AllocationStrategy", "InstancePoolsToUseCount"}
		known = []string{"price-capacity-optimized", "capacity-optimized", "capacity-optimized-prioritized", "lowest-price", "diversified"}
	}
	if err := n.at(options).only(options, members...); err != nil {
		return err
	}
	if err := n.oneOf(options+".AllocationStrategy", known...); err != nil {
		return err
	}
	pools, err := n.integer(options+".InstancePoolsToUseCount", 1)
	if err == nil && f.capacity == capacity {
		f.strategy, f.pools = n.str(options+".AllocationStrategy"), pools
	}
	return err
}

// parseConfig parses a launch template and its overrides. A template that is not visible yet is an error.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_FleetLaunchTemplateOverridesRequest.html
func (c *Cloud) parseConfig(n *node, capacity string, now time.Time) ([]*override, error) {
	seen := c.seenAt(now)
	said := n.at("LaunchTemplateSpecification")
	template, err := c.findTemplate(said.str("LaunchTemplateId"), said.str("LaunchTemplateName"), seen)
	if err != nil {
		return nil, err
	}
	if !said.has("Version") {
		return nil, refuse("MissingParameter", "The request must contain the parameter Version of the launch template")
	}
	if err := template.version(said.str("Version")); err != nil {
		return nil, err
	}
	items := n.items("Overrides")
	if len(items) == 0 {
		items = []*node{{}}
	}
	var overrides []*override
	for _, item := range items {
		if err := item.only("Overrides", "InstanceType", "SubnetId", "ImageId", "AvailabilityZone", "Priority", "WeightedCapacity"); err != nil {
			return nil, err
		}
		o := &override{template: template, version: said.str("Version"), spec: template.spec, name: item.str("InstanceType"),
			subnet: item.str("SubnetId"),
			zone:   item.str("AvailabilityZone"), image: item.str("ImageId"), weight: 1}
		if err := o.parseNumbers(item); err != nil {
			return nil, err
		}
		defaultTo(&o.name, template.spec.instanceType)
		if o.name == "" {
			return nil, refuse("MissingParameter", "Neither the launch template nor the override names an instance type")
		}
		if slices.ContainsFunc(overrides, func(b *override) bool { return b.name == o.name && b.subnet == o.subnet && b.zone == o.zone }) {
			return nil, refuse("InvalidParameterValue", "Duplicate override: instance type %s, subnet %s, zone %s", o.name, o.subnet, o.zone)
		}
		c.resolve(o, capacity, seen)
		overrides = append(overrides, o)
	}
	return overrides, nil
}

func (o *override) parseNumbers(item *node) error {
	var err error
	if o.hasOrder = item.has("Priority"); o.hasOrder {
		if o.priority, err = strconv.ParseFloat(item.str("Priority"), 64); err != nil || o.priority < 0 {
			return refuse("InvalidParameterValue", "Value (%s) for parameter Priority is invalid. It must be a number of at least 0.",
				item.str("Priority"))
		}
	}
	if item.has("WeightedCapacity") {
		if o.weight, err = strconv.ParseFloat(item.str("WeightedCapacity"), 64); err != nil || o.weight != 1 {
			return refuse("UnsupportedOperation", "WeightedCapacity '%s' is not simulated, only 1", item.str("WeightedCapacity"))
		}
	}
	return nil
}

// xmlOverride identifies the override of an instance or error.
type xmlOverride struct {
	TemplateID   string `xml:"launchTemplateSpecification>launchTemplateId"`
	TemplateName string `xml:"launchTemplateSpecification>launchTemplateName"`
	Version      string `xml:"launchTemplateSpecification>version"`
	Type         string `xml:"overrides>instanceType"`
	Subnet       string `xml:"overrides>subnetId,omitempty"`
	Zone         string `xml:"overrides>availabilityZone,omitempty"`
	Image        string `xml:"overrides>imageId,omitempty"`
	Priority     string `xml:"overrides>priority,omitempty"`
}

type xmlFleetError struct {
	Override  xmlOverride `xml:"launchTemplateAndOverrides"`
	Lifecycle string      `xml:"lifecycle"`
	Code      string      `xml:"errorCode"`
	Message   string      `xml:"errorMessage"`
}

type xmlFleetInstances struct {
	Override  xmlOverride `xml:"launchTemplateAndOverrides"`
	Lifecycle string      `xml:"lifecycle"`
	IDs       []string    `xml:"instanceIds>item,omitempty"`
	Type      string      `xml:"instanceType"`
}

type xmlFleet struct {
	ID        string              `xml:"fleetId"`
	Errors    []xmlFleetError     `xml:"errorSet>item,omitempty"`
	Instances []xmlFleetInstances `xml:"fleetInstanceSet>item,omitempty"`
}

func (o *override) xml() xmlOverride {
	out := xmlOverride{TemplateID: o.template.id, TemplateName: o.template.name, Version: "1", Type: o.name,
		Subnet: o.subnet, Zone: o.zone, Image: o.image}
	if o.hasOrder {
		out.Priority = strconv.FormatFloat(o.priority, 'f', -1, 64)
	}
	return out
}

// fulfill launches in the order of the strategy until the target is met or nothing is left to try.
func (c *Cloud) fulfill(f *fleetRequest, now time.Time) xmlFleet {
	out := xmlFleet{ID: f.id}
	missing := f.total
	for _, o := range c.rank(f, now) {
		if missing == 0 {
			break
		}
		share := missing
		if f.strategy == "diversified" || f.strategy == "lowest-price" && f.pools > 1 {
			share = max((f.total+min(f.pools, len(f.overrides))-1)/min(f.pools, len(f.overrides)), 1)
			if f.strategy == "diversified" {
				share = max(f.total/len(f.overrides), 1)
			}
			share = min(share, missing)
		}
		ids, err := c.launchMany(o, f, share, now)
		if len(ids) > 0 {
			out.Instances = append(out.Instances, xmlFleetInstances{o.xml(), f.lifecycle, ids, o.name})
			missing -= len(ids)
		}
		if refusal, ok := err.(*apiError); ok {
			out.Errors = append(out.Errors, xmlFleetError{o.xml(), f.lifecycle, refusal.code, refusal.message})
		}
	}
	return out
}

// instanceTags returns the tags of a fleet's instances: the request's, which take precedence over the template's, and
// AWS's own.
func (f *fleetRequest) instanceTags(o *override) map[string]string {
	tags := map[string]string{}
	if f.id != "" {
		tags["aws:ec2:fleet-id"] = f.id
	}
	if o.template != nil {
		tags["aws:ec2launchtemplate:id"], tags["aws:ec2launchtemplate:version"] = o.template.id, "1"
	}
	maps.Copy(tags, o.spec.tags["instance"])
	maps.Copy(tags, f.tags["instance"])
	return tags
}
