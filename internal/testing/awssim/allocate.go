package awssim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// rank orders a fleet's overrides by its allocation strategy.
//
//	lowest-price                    cheapest pool first; the rest is tried when it is empty
//	prioritized                     by Priority, lowest number first; overrides without one come last
//	diversified                     in the given order, a share to each
//	capacity-optimized              deepest pool first
//	capacity-optimized-prioritized  deepest first, Priority among equally deep pools
//	price-capacity-optimized        the deeper half of the pools first, the cheapest of them first
//
// EC2 does not publish how it measures capacity. Here it is the free part of a pool, in quarters. Ties are broken by
// seed. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-allocation-strategy.html
func (c *Cloud) rank(f *fleetRequest, now time.Time) []*override {
	type ranked struct {
		*override
		price, tie float64
		depth      int
	}
	list := make([]ranked, len(f.overrides))
	for k, o := range f.overrides {
		list[k] = ranked{override: o, tie: c.chance("tie", o.pool)}
		if o.permanent == nil {
			list[k].price, list[k].depth = c.price(o.pool, now), c.depth(o.pool, now)
		}
	}
	byPrice := func(a, b ranked) int { return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.tie, b.tie)) }
	byDepth := func(a, b ranked) int { return cmp.Compare(b.depth, a.depth) }
	byPriority := func(a, b ranked) int {
		if a.hasOrder != b.hasOrder {
			if a.hasOrder {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.priority, b.priority)
	}
	order := map[string]func(a, b ranked) int{
		"lowest-price":                   byPrice,
		"prioritized":                    func(a, b ranked) int { return cmp.Or(byPriority(a, b), byPrice(a, b)) },
		"diversified":                    func(_, _ ranked) int { return 0 },
		"capacity-optimized":             func(a, b ranked) int { return cmp.Or(byDepth(a, b), cmp.Compare(a.tie, b.tie)) },
		"capacity-optimized-prioritized": func(a, b ranked) int { return cmp.Or(byDepth(a, b), byPriority(a, b), byPrice(a, b)) },
		"price-capacity-optimized": func(a, b ranked) int {
			return cmp.Or(cmp.Compare(boolInt(a.depth < 3), boolInt(b.depth < 3)), byPrice(a, b))
		},
	}[f.strategy]
	slices.SortStableFunc(list, order)
	overrides := make([]*override, len(list))
	for k, r := range list {
		overrides[k] = r.override
	}
	return overrides
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// resolve finds the pool of an override, and the error if a launch from it is impossible regardless of capacity.
func (c *Cloud) resolve(o *override, capacity string, seen time.Time) {
	subnetID := o.subnet
	if len(o.spec.interfaces) > 0 {
		defaultTo(&subnetID, o.spec.interfaces[0].subnet)
	}
	s := c.subnet(subnetID)
	o.pool = pool{o.name, o.zone, capacity}
	if s != nil {
		o.pool.zone = s.zone.name
	}
	o.permanent = c.checkLaunch(o, s, seen)
}

// checkLaunch makes the checks that EC2 makes at a launch before it checks capacity.
func (c *Cloud) checkLaunch(o *override, s *subnet, seen time.Time) error {
	t, spec := c.types[o.name], o.spec
	switch {
	case t == nil:
		return refuse("InvalidParameterValue", "The instance type '%s' does not exist", o.name)
	case s == nil && o.subnet != "":
		return refuse("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", o.subnet)
	case s == nil:
		return refuse("VPCIdNotSpecified", "No default VPC for this user")
	case o.zone != "" && o.zone != s.zone.name:
		return refuse("InvalidParameterCombination", "The availability zone %s is not that of subnet %s", o.zone, s.id)
	case !slices.Contains(c.zonesOf(t), s.zone):
		return refuse("InvalidFleetConfiguration", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s).", o.name, s.zone.name)
	case !t.supports(o.pool.capacity) && spec.market != marketBlock:
		return refuse("Unsupported", "The requested configuration is currently not supported. Please check the documentation for supported configurations.")
	}
	imageID := o.image
	defaultTo(&imageID, spec.image)
	i := c.image(imageID)
	if i == nil {
		return imageNotFound(imageID)
	}
	if !t.runs(i.arch) {
		return refuse("InvalidFleetConfiguration", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.", strings.Join(t.Arch, ","), i.arch)
	}
	for _, check := range []error{spec.checkVolumes(i), c.checkProfile(spec, seen), c.checkGroups(spec, s),
		checkInterfaces(spec, t), c.checkPlacement(spec, t, s)} {
		if check != nil {
			return check
		}
	}
	return nil
}

// checkGroups rejects security groups that do not exist or belong to another VPC.
func (c *Cloud) checkGroups(spec *launchSpec, s *subnet) error {
	ids := slices.Clone(spec.groups)
	for _, i := range spec.interfaces {
		ids = append(ids, i.groups...)
	}
	for _, id := range ids {
		g := c.group(id)
		if g == nil {
			return refuse("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
		if g.vpc != s.vpc {
			return refuse("InvalidParameter", "Security group %s and subnet %s belong to different networks.", id, s.id)
		}
	}
	return nil
}

// checkInterfaces rejects interfaces that the type does not support.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html#network-cards, efa.html
func checkInterfaces(spec *launchSpec, t *machineType) error {
	if len(spec.interfaces) == 0 {
		return nil
	}
	perCard, efas, primary := map[int]int{}, 0, false
	for _, i := range spec.interfaces {
		perCard[i.card]++
		primary = primary || i.card == 0 && i.device == 0 && i.kind != "efa-only"
		if i.kind != "interface" {
			efas++
		}
		if i.card >= t.cards() {
			return refuse("InvalidNetworkCardIndex.Invalid", "Network card index %d is not valid for instance type %s, which has %d",
				i.card, t.Name, t.cards())
		}
		if len(i.tracking) > 0 && t.Hypervisor != "nitro" {
			return refuse("UnsupportedOperation", "Connection tracking timeouts are not supported for instance type %s", t.Name)
		}
	}
	switch {
	case !primary:
		return refuse("InvalidParameterValue", "A launch with network interfaces needs one of device index 0 on network card 0")
	case efas > t.EFA:
		return refuse("AttachmentLimitExceeded", "Interface count %d exceeds the EFA limit %d for instance type %s", efas, t.EFA, t.Name)
	}
	for card, n := range perCard {
		if n > t.enisOn(card) {
			return refuse("AttachmentLimitExceeded", "Interface count %d exceeds the limit for %s on network card %d", n, t.Name, card)
		}
	}
	return nil
}

// checkPlacement rejects placement groups that do not exist, and capacity reservations that do not match.
func (c *Cloud) checkPlacement(spec *launchSpec, t *machineType, s *subnet) error {
	if err := c.checkPlacementGroup(spec, t); err != nil {
		return err
	}
	return c.checkReservation(spec, t, s)
}

// launchMany launches up to n instances from an override. If there are fewer, the error says why.
func (c *Cloud) launchMany(o *override, f *fleetRequest, n int, now time.Time) ([]string, error) {
	if o.permanent != nil {
		return nil, o.permanent
	}
	if c.launchDenied() || c.policyDenies(o) {
		return nil, c.deniedError("ec2", "RunInstances")
	}
	subnetID := o.subnet
	if len(o.spec.interfaces) > 0 {
		defaultTo(&subnetID, o.spec.interfaces[0].subnet)
	}
	s := c.subnet(subnetID)
	var ids []string
	for range n {
		if err := c.unavailable(o, s, now); err != nil {
			return ids, err
		}
		ids = append(ids, c.launch(o, f, s, now).ID)
	}
	return ids, nil
}

// unavailable returns why one more instance is not available. Quotas are checked first, then addresses, then capacity.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
func (c *Cloud) unavailable(o *override, s *subnet, now time.Time) error {
	t := c.types[o.name]
	if refusal := c.state(o.pool).refusal; refusal != nil {
		return refusal
	}
	quota := c.opts.Quota.OnDemand
	if o.pool.capacity == spot {
		quota = c.opts.Quota.Spot
	}
	if quota > 0 && c.vcpus(o.pool.capacity)+t.VCPU > quota {
		if o.pool.capacity == spot {
			return refuse("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
		}
		return refuse("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.", quota)
	}
	if s.free() < o.spec.addresses() {
		return refuse("InsufficientFreeAddressesInSubnet",
			"There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", s.id)
	}
	if full := c.placementFull(o, s); full != nil {
		return full
	}
	if o.spec.reservation != "" || o.spec.only() {
		if c.reservationOf(o) == nil {
			return refuse("ReservationCapacityExceeded",
				"The requested reservation does not have sufficient compatible and available capacity for this request.")
		}
		return nil
	}
	if c.reservationOf(o) != nil || c.free(o.pool, now) > 0 {
		return nil
	}
	if o.pool.capacity == spot {
		return refuse("InsufficientInstanceCapacity", "There is no Spot capacity available that matches your request.")
	}
	return refuse("InsufficientInstanceCapacity",
		"We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). Our system will be working on provisioning additional capacity.", o.name, o.pool.zone)
}

// vcpus returns the number of vCPUs of the live instances of a capacity type.
func (c *Cloud) vcpus(capacity string) int {
	n := 0
	for _, i := range c.order {
		if i.CapacityType == capacity && i.alive() {
			n += c.types[i.Type].VCPU
		}
	}
	return n
}

// addresses returns how many IPv4 addresses an instance uses: one per interface, and 16 per prefix.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-prefix-eni.html
func (s *launchSpec) addresses() int {
	if len(s.interfaces) == 0 {
		return 1
	}
	n := 0
	for _, i := range s.interfaces {
		if i.kind != "efa-only" {
			n += 1 + 16*i.prefixes
		}
	}
	return n
}

// String returns the pool's name for test messages.
func (p pool) String() string { return fmt.Sprintf("%s/%s/%s", p.name, p.zone, p.capacity) }
